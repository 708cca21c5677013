"""Abstention with a guaranteed precision around any model, in the conventions of scikit-learn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix import _calmix
from calmix.calibration import Estimate
from calmix.labelled_probabilities import checked, labelled_probabilities, probability_rows
from calmix.parameters import Parameters, check_share
from calmix.prediction_sets import share_with_interval


@dataclass(frozen=True)
class AnswerThreshold:
    """The score at or above which the model answers."""

    precision: float
    """The guaranteed precision."""
    log_odds: float
    """The lowest log-odds of the likeliest class that are answered."""
    answered: int
    """The labels with at least this score."""
    right: int
    """Those of them that were predicted correctly."""
    n: int
    """All labels; of each group one."""

    @property
    def confidence(self) -> float:
        """The lowest probability of the likeliest class that is answered, rounded: decide by `log_odds`."""
        return 1 / (1 + math.exp(-self.log_odds)) if self.log_odds > -700 else 0.0


@dataclass(frozen=True)
class AnswerReport:
    """The answers to labelled rows, compared with their labels."""

    guaranteed: float
    """The precision that is guaranteed."""
    precision: Estimate | None
    """The share of the answers that are right, with its exact 95% confidence interval; `None` without answers."""
    answered: float
    """The share of the rows that are answered."""
    n: int


class Abstainer(Parameters):
    """Answers only where the answers of any model have a guaranteed precision.

    Fit it on labels that the model was neither trained nor calibrated on. At least the share `precision` of the answers to new
    rows like them is then right, except with probability `delta` over the draw of the labels. Several precisions hold together,
    all of them except with probability `delta` (learn then test, arXiv 2110.01052); so they may be compared before one is chosen.
    With one precision, this is the threshold of `CalmixClassifier.predict_or_abstain` and of `calmix predict`.

    Parameters
    ----------
    precision : float or sequence of float, default=0.95
        The share of the answers that must be right, or several.
    delta : float, default=0.1
        The probability with which the guarantee may fail.

    Attributes
    ----------
    classes_ : ndarray
        The classes of the columns.
    thresholds_ : list of AnswerThreshold or None
        The threshold of each precision, in their order; `None` if the labels do not show it for any threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from calmix import Abstainer
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.dirichlet(np.full(3, 0.2), size=3000)
    >>> y = (probabilities.cumsum(axis=1) > rng.uniform(size=(3000, 1))).argmax(axis=1)
    >>> abstainer = Abstainer(precision=[0.9, 0.95]).fit(y[:1000], probabilities[:1000])
    >>> answers = abstainer.predict(probabilities[1000:], precision=0.95)
    >>> answered = ~answers.mask
    >>> bool((answers.data == y[1000:])[answered].mean() >= 0.95)
    True
    """

    classes_: NDArray[Any]
    thresholds_: list[AnswerThreshold | None]

    def __init__(self, precision: float | Sequence[float] = 0.95, *, delta: float = 0.1) -> None:
        self.precision = precision
        self.delta = delta

    def fit(
        self,
        y: ArrayLike,
        probabilities: ArrayLike,
        *,
        labels: Sequence[Any] | None = None,
        groups: ArrayLike | None = None,
    ) -> Abstainer:
        """Finds the thresholds on labels and the probabilities that the model gave their rows.

        Arguments are those of `PredictionSets.fit`. One label of each group is tested: those of a group are not independent.
        """
        precisions = self._precisions()
        delta = check_share("delta", self.delta)
        given = labelled_probabilities(y, probabilities, labels, groups)
        scores = checked(given.rows, lambda: _calmix.answer_scores(given.rows))
        found = _calmix.answer_thresholds(scores, given.right, given.groups, precisions, delta)
        self.classes_ = given.classes
        self.n_labels_ = len(scores)
        self.thresholds_ = [
            None if of_labels is None else AnswerThreshold(precision, *of_labels)
            for precision, of_labels in zip(precisions, found)
        ]
        return self

    def answers(self, probabilities: ArrayLike, precision: float | None = None) -> NDArray[np.bool_]:
        """Returns which rows are answered; `precision` is one of those of the constructor, and needed if there are several."""
        return self._answered(probabilities, precision)[1]

    def predict(self, probabilities: ArrayLike, precision: float | None = None) -> np.ma.MaskedArray[Any, Any]:
        """Returns the likeliest class of each row, masked where the model abstains.

        A warning says if no threshold reaches the precision; every row is masked then.
        """
        rows, answered = self._answered(probabilities, precision)
        return np.ma.masked_array(self.classes_[rows.argmax(axis=1)], mask=~answered)

    def report(self, y: ArrayLike, probabilities: ArrayLike) -> list[AnswerReport]:
        """Compares the answers to rows with their labels, for each precision; the labels should be others than those of `fit`."""
        self._check_fitted()
        given = labelled_probabilities(y, probabilities, self.classes_.tolist(), None)
        reports = []
        for precision in self._precisions():
            answered = self._answered(probabilities, precision)[1]
            hits = given.right[answered]
            shown = share_with_interval(hits) if len(hits) else None
            reports.append(AnswerReport(precision, shown, float(answered.mean()), len(answered)))
        return reports

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "thresholds_")

    def _check_fitted(self) -> None:
        if not hasattr(self, "thresholds_"):
            raise self._not_fitted("fit(y, probabilities)")

    def _precisions(self) -> list[float]:
        several = isinstance(self.precision, (Sequence, np.ndarray)) and not isinstance(self.precision, str)
        given: list[Any] = list(self.precision) if several else [self.precision]  # type: ignore[arg-type]
        if not given:
            raise ValueError("precision is empty, and must be a number between 0 and 1, or several")
        return [check_share("precision", float(each) if isinstance(each, np.floating) else each) for each in given]

    def _answered(self, probabilities: ArrayLike, precision: float | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        self._check_fitted()
        precisions = self._precisions()
        if precision is None and len(precisions) > 1:
            raise ValueError(f"several precisions were fitted: pass precision=, one of {precisions}")
        if precision is not None and precision not in precisions:
            raise ValueError(f"precision {precision!r} was not fitted: it must be one of {precisions}")
        wanted = precisions[0] if precision is None else precision
        threshold = self.thresholds_[precisions.index(wanted)]
        rows = probability_rows(probabilities, len(self.classes_))
        scores = checked(rows, lambda: _calmix.answer_scores(rows))
        if threshold is None:
            message = f"no threshold reaches a precision of {wanted:.6g} on {self.n_labels_} labels: every row is abstained from"
            warnings.warn(message, stacklevel=3)
            return rows, np.zeros(len(rows), dtype=bool)
        return rows, scores >= threshold.log_odds
