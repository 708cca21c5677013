"""Exceptions and warnings of scikit-learn, which the package does not need."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def from_sklearn(module: str, name: str) -> Any:
    """An object of scikit-learn if it was imported, otherwise `None`: its users catch its exceptions."""
    if "sklearn" not in sys.modules:
        return None
    return getattr(import_module(f"sklearn.{module}"), name)
