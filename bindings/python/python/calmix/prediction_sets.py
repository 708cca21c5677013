"""Prediction sets around any model, in the conventions of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix import _calmix
from calmix.calibration import Estimate
from calmix.labelled_probabilities import checked, labelled_probabilities, probability_rows
from calmix.parameters import Parameters, check_share, thread_count

SetRule = Literal["lac", "aps", "lac-by-class"]
_RULES = ("lac", "aps", "lac-by-class")


@dataclass(frozen=True)
class SetReport:
    """The sets of labelled rows, compared with their labels."""

    coverage: Estimate
    """The share of the sets that contain the label, with its exact 95% confidence interval."""
    by_class: dict[Any, Estimate]
    """The same for the labels of each class that has any."""
    mean_size: float
    singletons: float
    """The share of the sets with one class."""
    empty: float
    """The share of the empty sets."""
    n: int


class PredictionSets(Parameters):
    """Prediction sets with a guaranteed coverage around the probabilities of any model.

    Fit it on labels that the model was neither trained nor calibrated on. A set of a new row like them then contains the true
    class with a probability of at least `coverage`, on average over such labels and rows (split conformal prediction). These
    are the sets of `CalmixClassifier.predict_set` and of `calmix predict`.

    Parameters
    ----------
    coverage : float, default=0.9
        The probability with which a set must contain the true class.
    rule : {"lac", "aps", "lac-by-class"}, default="lac"
        `lac` gives the smallest sets on average, `aps` sets that grow where the model is unsure, and `lac-by-class` the coverage
        in each class.
    randomised : bool, default=True
        Whether `aps` includes the last class with a random probability, which brings the coverage closest to the requested one.
    allow_empty : bool, default=False
        By default every set contains the likeliest class, which the thresholds take into account. `True` gives the sets of
        the literature, which are empty where no class conforms.
    random_state : int, default=0
        The seed of `aps`. A set depends on it and on the number of the row.
    n_jobs : int or None, default=None
        Threads; `None` for one, −1 for all processors. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The classes of the columns.
    scores_ : ndarray
        The nonconformity score of each label.
    thresholds_ : ndarray
        For each class, the largest score with which it is in a set; infinity if it is in every set.
    n_labels_, n_groups_ : int
        The labels, and the groups that they are from.

    Examples
    --------
    >>> import numpy as np
    >>> from calmix import PredictionSets
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.dirichlet(np.ones(3), size=2000)
    >>> y = np.array(["cat", "dog", "owl"])[(probabilities.cumsum(axis=1) > rng.uniform(size=(2000, 1))).argmax(axis=1)]
    >>> sets = PredictionSets(coverage=0.9).fit(y[:500], probabilities[:500])
    >>> sets.predict_set(probabilities[500:]).shape
    (1500, 3)
    >>> bool(sets.report(y[500:], probabilities[500:]).coverage.value > 0.87)
    True
    """

    classes_: NDArray[Any]
    scores_: NDArray[np.float64]
    n_labels_: int
    n_groups_: int

    def __init__(
        self,
        coverage: float = 0.9,
        *,
        rule: SetRule = "lac",
        randomised: bool = True,
        allow_empty: bool = False,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.coverage = coverage
        self.rule = rule
        self.randomised = randomised
        self.allow_empty = allow_empty
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        y: ArrayLike,
        probabilities: ArrayLike,
        *,
        labels: Sequence[Any] | None = None,
        groups: ArrayLike | None = None,
    ) -> PredictionSets:
        """Computes the scores of labels from the probabilities that the model gave their rows.

        Columns are the classes of y in ascending order; if y does not have all of them, pass `labels=clf.classes_`. `groups` names
        what each row comes from, such as its patient or video: the guarantee is then about one row of a new group.
        """
        check_share("coverage", self.coverage)
        if self.rule not in _RULES:
            raise ValueError(f"rule is {self.rule!r}, and must be one of {', '.join(_RULES)}")
        given = labelled_probabilities(y, probabilities, labels, groups)
        compute = lambda: _calmix.set_scores(given.rows, given.codes, *self._how())
        self.scores_ = checked(given.rows, compute)
        self.classes_ = given.classes
        self._codes = given.codes
        self._groups = given.groups
        self.n_labels_ = len(given.codes)
        self.n_groups_ = len(np.unique(given.groups)) if len(given.groups) else len(given.codes)
        return self

    @property
    def thresholds_(self) -> NDArray[np.float64]:
        """For each class, the largest score with which it is in a set of the coverage; infinity if it is in every set."""
        return self._rule(self.coverage).thresholds(len(self.classes_))

    def predict_set(self, probabilities: ArrayLike, coverage: float | None = None) -> NDArray[np.bool_]:
        """Returns which classes are in the prediction set of each row, as a table of shape (n, classes).

        `coverage` is that of the constructor unless given. A warning says what the labels are too few for.
        """
        share = check_share("coverage", self.coverage if coverage is None else coverage)
        rule = self._rule(share)
        rows = probability_rows(probabilities, len(self.classes_))
        missing = self._missing(rule, share)
        if missing is not None:
            warnings.warn(missing, stacklevel=2)
        return checked(rows, lambda: rule.members(rows, thread_count(self.n_jobs)))

    def report(self, y: ArrayLike, probabilities: ArrayLike, coverage: float | None = None) -> SetReport:
        """Compares the sets of rows with their labels, which should be others than those of `fit`."""
        members = self.predict_set(probabilities, coverage)
        given = labelled_probabilities(y, probabilities, self.classes_.tolist(), None)
        covered = members[np.arange(len(members)), given.codes]
        sizes = members.sum(axis=1)
        by_class = {
            name: share_with_interval(covered[given.codes == column])
            for column, name in enumerate(self.classes_.tolist())
            if (given.codes == column).any()
        }
        return SetReport(
            coverage=share_with_interval(covered),
            by_class=by_class,
            mean_size=float(sizes.mean()),
            singletons=float((sizes == 1).mean()),
            empty=float((sizes == 0).mean()),
            n=len(members),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scores_")

    def _how(self) -> tuple[str, int, bool]:
        rule = "aps-deterministic" if self.rule == "aps" and not self.randomised else self.rule
        return rule, self.random_state or 0, self.allow_empty

    def _rule(self, coverage: float) -> _calmix.SetRule:
        if not hasattr(self, "scores_"):
            raise self._not_fitted("fit(y, probabilities)")
        return _calmix.SetRule(self.scores_, self._codes, self._groups, *self._how(), coverage)

    def _missing(self, rule: _calmix.SetRule, coverage: float) -> str | None:
        """Says which classes are in every set, because there are too few labels."""
        in_every_set = np.isinf(rule.thresholds(len(self.classes_)))
        if not in_every_set.any():
            return None
        needed = _calmix.SetRule.min_labels(coverage)
        what = "labels" if self.n_groups_ == self.n_labels_ else "groups of labels"
        if self.rule != "lac-by-class":
            return f"{self.n_groups_} {what} are too few for a coverage of {coverage:.6g}, which needs {needed}: every set contains all classes"
        named = [str(name) for name in self.classes_[in_every_set][:20]]
        rest = ", …" if in_every_set.sum() > len(named) else ""
        return (
            f"a coverage of {coverage:.6g} in each class needs {needed} {what} per class; classes with fewer are in every set: "
            f"{', '.join(named)}{rest}"
        )


def share_with_interval(hits: NDArray[np.bool_]) -> Estimate:
    """The share of hits with its exact 95% confidence interval (Clopper and Pearson)."""
    low, high = _calmix.clopper_pearson(int(hits.sum()), len(hits), 0.95)
    return Estimate(float(hits.mean()), low, high, 0.95)
