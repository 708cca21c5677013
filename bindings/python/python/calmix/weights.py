"""The weights of labels in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix.arrays import as_array

ClassWeight = Literal["balanced"] | Mapping[Any, float] | None


def label_weights(
    sample_weight: ArrayLike | None, class_weight: ClassWeight, codes: NDArray[np.int64], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """The weight of each row, that of its sample times that of its class; empty if all are 1.

    `"balanced"` is left to the fit, which weighs classes by the labels that it is trained on.
    """
    if class_weight is not None and class_weight != "balanced" and not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight is {class_weight!r}, but must be 'balanced', a dict of class to weight, or None")
    if sample_weight is None and not isinstance(class_weight, Mapping):
        return np.empty(0)
    weights = np.ones(len(codes))
    if sample_weight is not None:
        given = as_array(sample_weight, "sample_weight")
        if given.ndim > 0 and given.shape != codes.shape:
            raise ValueError(f"sample_weight has the shape {given.shape}, but X has {len(codes)} rows")
        if given.dtype.kind not in "biufO":
            raise ValueError(f"sample_weight has the dtype {given.dtype}, but weights are numbers")
        weights *= given.astype(np.float64)
    if isinstance(class_weight, Mapping):
        names = classes.tolist()
        unknown = [name for name in class_weight if name not in names]
        if unknown:
            raise ValueError(f"class_weight has a weight for {unknown[0]!r}, which is not a class of y")
        of_class = np.array([class_weight.get(name, 1.0) for name in names], dtype=np.float64)
        # The last one, for rows without a label.
        weights *= np.append(of_class, 1.0)[codes]
    return weights


def rows_with_weight(
    weights: NDArray[np.float64], codes: NDArray[np.int64], classes: NDArray[Any]
) -> NDArray[np.intp] | None:
    """The rows to train on, if some have the weight 0, which leaves a row out; `None` for all rows."""
    if not (weights == 0).any():
        return None
    kept = np.flatnonzero(weights != 0)
    gone = np.setdiff1d(codes[codes >= 0], codes[kept])
    if len(gone) > 0:
        raise ValueError(f"every label of the class {classes.tolist()[gone[0]]!r} has the weight zero: leave these rows out of X and y")
    return kept
