"""The groups of samples: those of one patient, video, site or writer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix.labels import is_missing, is_of_pandas, one_dimensional


def group_numbers(groups: ArrayLike | None, rows: int) -> NDArray[np.uint32]:
    """The number of the group of each row, a number of its own for a row without a group; empty without groups."""
    if groups is None:
        return np.empty(0, dtype=np.uint32)
    if isinstance(groups, (list, tuple)):
        # As they are: NumPy would make strings of numbers beside strings, and of NaN.
        groups = np.array(groups, dtype=object)
    values = one_dimensional(groups, "groups")
    if len(values) != rows:
        raise ValueError(f"X has {rows} rows, but groups has {len(values)}: inconsistent numbers of samples")
    if isinstance(values, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(values)
        names = values.data.tolist()
    elif is_of_pandas(values):
        missing = np.asarray(values.isna(), dtype=bool)
        names = list(values)
    else:
        missing = np.zeros(rows, dtype=bool)
        names = values.tolist()
    numbers = np.empty(rows, dtype=np.uint32)
    known: dict[Any, int] = {}
    count = 0
    for row, name in enumerate(names):
        number = count if missing[row] or is_missing(name) else known.setdefault(_key(name), count)
        count = max(count, number + 1)
        numbers[row] = number
    return numbers


def _key(name: Any) -> Any:
    try:
        hash(name)
    except TypeError as error:
        raise TypeError(f"groups has {name!r}, which is neither text nor a number") from error
    return name
