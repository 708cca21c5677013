"""The groups of samples: those of one patient, video, site or writer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix.labels import values_or_none


def group_numbers(groups: ArrayLike | None, rows: int) -> NDArray[np.uint32]:
    """The number of the group of each row, a number of its own for a row without a group; empty without groups."""
    if groups is None:
        return np.empty(0, dtype=np.uint32)
    numbers = np.empty(rows, dtype=np.uint32)
    known: dict[Any, int] = {}
    count = 0
    for row, name in enumerate(values_or_none(groups, rows, "groups")):
        number = count if name is None else known.setdefault(_key(name), count)
        count = max(count, number + 1)
        numbers[row] = number
    return numbers


def _key(name: Any) -> Any:
    try:
        hash(name)
    except TypeError as error:
        raise TypeError(f"groups has {name!r}, which is neither text nor a number") from error
    return name
