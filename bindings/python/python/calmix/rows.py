"""Rows of probabilities or logits with their labels, checked, as the native code takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix import _calmix
from calmix.arrays import as_array


def table(rows: ArrayLike, name: str) -> NDArray[Any]:
    """The rows as float32 or float64, contiguous and finite; float64 stays float64."""
    array = unchecked_table(rows, name)
    refuse_infinite(array, name)
    return array


def unchecked_table(rows: ArrayLike, name: str) -> NDArray[Any]:
    """The rows as float32 or float64, contiguous."""
    array = as_array(rows, name)
    if array.ndim != 2:
        hint = f": pass np.column_stack([1 - {name}, {name}])" if array.ndim == 1 and name == "y_prob" else ""
        raise ValueError(f"{name} must have the shape (n, classes), got {array.shape}{hint}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: dtype={array.dtype} is not numeric")
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    return np.ascontiguousarray(array, dtype=dtype)


def refuse_infinite(array: NDArray[Any], name: str) -> None:
    """Names the first row that is not finite."""
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise ValueError(f"{name}: row {int(finite.argmin())} contains NaN or infinity")


def refuse_invalid(
    array: NDArray[Any], are_logits: bool, name: str = "y_prob", next_step: str = "pass logits="
) -> None:
    """Names the first row that is not one of logits or probabilities: logits as `y_prob` are refused, never guessed.

    The native code refuses the same rows in one pass over the memory; these passes only say what is wrong.
    """
    if are_logits:
        return refuse_infinite(array, "logits")
    refuse_infinite(array, name)
    outside = (array.min(axis=1, initial=0.0) < 0) | (array.max(axis=1, initial=0.0) > 1)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(f"{name}: row {row} has numbers outside of [0, 1]; if these are logits, {next_step}")
    far = np.abs(array.sum(axis=1, dtype=np.float64) - 1) > _calmix.SUM_TOLERANCE
    if far.any():
        row = int(far.argmax())
        raise ValueError(f"{name}: row {row} sums to {array[row].sum():.6g}, not to 1; if these are logits, {next_step}")


def one_of(y_prob: ArrayLike | None, logits: ArrayLike | None) -> tuple[NDArray[Any], bool]:
    """The rows, unchecked, and whether they are logits; exactly one argument must be there."""
    if (y_prob is None) == (logits is None):
        raise TypeError("pass either y_prob, rows of probabilities, or logits=")
    if logits is not None:
        return unchecked_table(logits, "logits"), True
    assert y_prob is not None
    return unchecked_table(y_prob, "y_prob"), False


def logits_of(y_prob: ArrayLike | None, logits: ArrayLike | None) -> NDArray[np.float32]:
    """The logits in float32; those of probabilities are their logarithms."""
    rows, are_logits = one_of(y_prob, logits)
    refuse_invalid(rows, are_logits)
    if are_logits:
        with np.errstate(over="ignore"):
            narrow = np.ascontiguousarray(rows, dtype=np.float32)
        refuse_infinite(narrow, "logits in float32")
        return narrow
    smallest = np.finfo(np.float32).tiny
    return np.log(np.maximum(rows, smallest)).astype(np.float32)


def encoded_labels(
    y_true: ArrayLike, rows: NDArray[Any], labels: Sequence[Any] | None
) -> tuple[NDArray[np.int64], list[str]]:
    """The column of each true class, and the names of the columns."""
    truth = as_array(y_true, "y_true")
    count, classes = rows.shape
    if truth.ndim != 1 or len(truth) != count:
        raise ValueError(f"y_true must have one class per row, {count}; it has the shape {truth.shape}")
    if labels is None:
        if truth.dtype.kind not in "biu":
            raise ValueError("y_true must be columns of y_prob, from 0; for other classes, pass labels=clf.classes_")
        codes = np.ascontiguousarray(truth, dtype=np.int64)
        names = [str(column) for column in range(classes)]
    else:
        order = np.asarray(labels)
        if len(order) != classes:
            raise ValueError(f"labels has {len(order)} classes, but there are {classes} columns")
        place = {value: column for column, value in enumerate(order.tolist())}
        if len(place) != classes:
            raise ValueError("labels names a class twice")
        codes = np.array([place.get(value, -1) for value in truth.tolist()], dtype=np.int64)
        names = [str(value) for value in order.tolist()]
    outside = (codes < 0) | (codes >= classes)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(f"y_true: row {row} is {truth[row]!r}, which is not one of the {classes} classes")
    return codes, names
