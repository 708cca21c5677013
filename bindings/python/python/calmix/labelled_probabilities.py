"""The probabilities of any model and the labels that they are compared with, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix.arrays import as_array
from calmix.groups import group_numbers
from calmix.rows import encoded_labels, refuse_invalid, unchecked_table

_T = TypeVar("_T")


@dataclass(frozen=True)
class LabelledProbabilities:
    """Rows of probabilities with the column of each label."""

    rows: NDArray[Any]
    codes: NDArray[np.int64]
    classes: NDArray[Any]
    """The class of each column."""
    groups: NDArray[np.uint32]

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the likeliest class is the label."""
        return self.rows.argmax(axis=1) == self.codes


def labelled_probabilities(
    y: ArrayLike, probabilities: ArrayLike, labels: Sequence[Any] | None, groups: ArrayLike | None
) -> LabelledProbabilities:
    """Reads the arguments of `fit`. Columns are `labels`, or else the classes of y in ascending order."""
    truth = as_array(y, "y")
    if truth.ndim == 2 and truth.shape[1] > 1:
        raise ValueError(f"y has the shape {truth.shape}: pass the labels first, fit(y, probabilities)")
    rows = probability_rows(probabilities)
    if labels is None:
        found = np.unique(truth)
        is_counted = truth.dtype.kind in "biu" and len(found) != rows.shape[1]
        # A class without a label here: only numbers of columns say which it is.
        classes = np.arange(rows.shape[1]) if is_counted else found
        if len(classes) != rows.shape[1]:
            message = f"y has {len(found)} classes, but probabilities have {rows.shape[1]} columns"
            raise ValueError(f"{message}: pass the classes of the columns, labels=clf.classes_")
    else:
        classes = np.asarray(labels)
    codes, _ = encoded_labels(truth, rows, classes.tolist())
    return LabelledProbabilities(rows, codes, classes, group_numbers(groups, len(rows)))


def probability_rows(probabilities: ArrayLike, classes: int | None = None) -> NDArray[Any]:
    """Rows of probabilities, with a column for each of the classes of the fit; the native code checks the numbers."""
    rows = unchecked_table(probabilities, "probabilities")
    if rows.shape[1] < 2:
        raise ValueError(f"probabilities have {rows.shape[1]} columns, but there is one for each class, and at least two classes")
    if classes is not None and rows.shape[1] != classes:
        raise ValueError(f"probabilities have {rows.shape[1]} columns, but those of the fit have {classes}")
    return rows


def checked(rows: NDArray[Any], compute: Callable[[], _T]) -> _T:
    """What the native code computes from rows; an error names the first row that is not one of probabilities."""
    try:
        return compute()
    except ValueError:
        refuse_invalid(rows, False, "probabilities", "pass their softmax")
        raise
