"""The labels of samples: which samples have none, and which classes the others are of."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix.arrays import as_array
from calmix.frames import as_column
from calmix.scikit_learn import from_sklearn


def encoded_classes(y: ArrayLike, rows: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The number of the class of each label, −1 without one, and the classes."""
    labels, unlabelled = present_labels(y, rows)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"y mixes labels of several types ({error}): make all of them strings, or all numbers") from error
    if len(classes) < 2:
        raise ValueError(f"y has {len(classes)} class(es) beside −1, which means unlabelled; at least two are needed")
    if labels.dtype.kind == "f" and (classes == classes.astype(np.int64)).all():
        classes = classes.astype(np.int64).astype(labels.dtype)
    elif labels.dtype.kind == "f":
        raise ValueError("Unknown label type: continuous. y has fractions, and a classifier needs classes")
    encoded = np.full(rows, -1, dtype=np.int64)
    encoded[~unlabelled] = codes
    return encoded, classes


def present_labels(y: ArrayLike, rows: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The labels of the samples that have one, in their order and of their own dtype, and which samples have none.

    −1, NaN, `None`, pandas' NA, empty strings and masked entries mean that a sample has none.
    """
    if y is None:
        raise ValueError("CalmixClassifier requires y to be passed, but the target y is None")
    labels = one_dimensional(y, "y")
    if len(labels) != rows:
        raise ValueError(f"X has {rows} rows, but y has {len(labels)} labels: inconsistent numbers of samples")
    if isinstance(labels, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(labels)
        present = labels.compressed()
    elif is_of_pandas(labels):
        # NumPy has no integers with missing values: without them, the labels keep their dtype.
        missing = np.asarray(labels.isna(), dtype=bool)
        present = as_array(labels[~missing], "y")
    else:
        missing = np.zeros(rows, dtype=bool)
        present = labels
    if present.dtype.kind == "T":
        present = present.astype(object)
    means_unlabelled = _means_unlabelled(present)
    unlabelled = missing.copy()
    unlabelled[~missing] = means_unlabelled
    return present[~means_unlabelled], unlabelled


def one_dimensional(values: Any, name: str) -> Any:
    """Values with one dimension: a series or an index of pandas, a masked array, or an array."""
    values = as_column(values)
    array = values if is_of_pandas(values) or isinstance(values, np.ma.MaskedArray) else as_array(values, name)
    if len(array.shape) == 2 and array.shape[1] == 1:
        warning = from_sklearn("exceptions", "DataConversionWarning") or UserWarning
        text = f"A column-vector {name} was passed when a 1d array was expected: pass {name}.ravel()"
        warnings.warn(text, warning, stacklevel=5)
        return array.iloc[:, 0] if is_of_pandas(array) else array.ravel()
    if len(array.shape) != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {array.shape} instead")
    return array


def values_or_none(values: Any, rows: int, name: str) -> list[Any]:
    """One value for each row, `None` where it is missing."""
    if isinstance(values, (list, tuple)):
        # As they are: NumPy would make strings of numbers beside strings, and of NaN.
        values = np.array(values, dtype=object)
    array = one_dimensional(values, name)
    if len(array) != rows:
        raise ValueError(f"X has {rows} rows, but {name} has {len(array)}: inconsistent numbers of samples")
    if isinstance(array, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(array)
        found = array.data.tolist()
    elif is_of_pandas(array):
        missing = np.asarray(array.isna(), dtype=bool)
        found = list(array)
    else:
        missing = np.zeros(rows, dtype=bool)
        found = array.tolist()
    return [None if gone or is_missing(value) else value for value, gone in zip(found, missing)]


def is_of_pandas(values: object) -> bool:
    """Whether values are a series, an index or a frame of pandas."""
    return hasattr(values, "isna") and hasattr(values, "shape")


def _means_unlabelled(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels mean that there is none."""
    kind = labels.dtype.kind
    if kind == "f":
        if np.isinf(labels).any():
            raise ValueError("y: Input contains infinity")
        return np.isnan(labels) | (labels == -1)
    if kind in "iu":
        return labels == -1
    if kind == "U":
        return (labels == "") | (labels == "-1")
    if kind == "O":
        return np.array([is_missing(label) or label in (-1, "-1") for label in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: `None`, NaN, pandas' NA or an empty string."""
    pandas = sys.modules.get("pandas")
    # pandas' NA is neither equal to itself nor different from itself.
    if value is None or (pandas is not None and value is pandas.NA):
        return True
    return bool(value != value) or value == ""
