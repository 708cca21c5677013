"""Several sets of features of the same samples, such as those of two models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def feature_sets(X: Any) -> Sequence[Any] | None:
    """The sets of a list or tuple of tables; `None` if X is a single table."""
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        return None
    is_table = [len(getattr(part, "shape", ())) in (2, 3) for part in X]
    return X if all(is_table) else None


def joined(sets: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The features of all sets of each row, one set after the other."""
    for number, table in enumerate(sets):
        if table.shape[:-1] != sets[0].shape[:-1]:
            raise ValueError(
                f"X[{number}] has {table.shape[0]} rows, but X[0] has {sets[0].shape[0]}: every set needs the same samples, "
                "in the same order"
                if table.shape[0] != sets[0].shape[0]
                else f"X[{number}] has another number of views than X[0]"
            )
    return sets[0] if len(sets) == 1 else np.concatenate(sets, axis=-1)
