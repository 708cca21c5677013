"""Keys of a recipe with their values, as they stand after `--set` on the command line."""

from __future__ import annotations

from collections.abc import Mapping


def as_settings(settings: Mapping[str, object]) -> list[tuple[str, str]]:
    """Returns the keys with their values as text."""
    return [(key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in settings.items()]
