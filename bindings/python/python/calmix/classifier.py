"""A classifier of embeddings, in the conventions of scikit-learn, which it does not need."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix import _calmix
from calmix.arrays import as_array, as_vectors
from calmix.feature_sets import feature_sets, joined
from calmix.frames import answer_frame, as_rows, column_names
from calmix.groups import group_numbers
from calmix.labels import encoded_classes, present_labels, values_or_none
from calmix.parameters import Parameters, thread_count
from calmix.scikit_learn import MetadataRequests
from calmix.settings import as_settings
from calmix.weights import ClassWeight, label_weights, rows_with_weight

SetRule = Literal["lac", "aps", "lac-by-class"]
Mix = Literal["estimate"] | Mapping[Any, float] | ArrayLike | None


@dataclass(frozen=True)
class Candidate:
    """A head that was trained and compared with others."""

    name: str
    """`logistic-regression`, `em`, `balanced-em`, `lr-em`, `neighbours` or `lr-neighbours`; with views `recipe` or `labels-alone`."""
    uses_unlabelled: bool
    """Whether it was trained on samples without labels too."""
    kept: bool
    """Whether it is the model."""
    nll: float | None
    """Mean negative log-likelihood of the labels out of fold, in nats; `None` if no class has two labels."""
    calibrator: dict[str, Any] | None
    """Its calibrator: the kind and its numbers; `None` if there are too few labels for one."""
    raw: dict[str, float] | None
    """Metrics of the labels out of fold before calibration."""
    calibrated: dict[str, float] | None
    """The same after calibration, each label by a calibrator that was fitted without it."""


@dataclass(frozen=True)
class OutOfFold:
    """Predictions for the training labels, each by a head that was trained without it."""

    rows: NDArray[np.uint64]
    """The rows of X."""
    probabilities: NDArray[np.float32]
    """Their probabilities, in the order of `classes_`; calibrated if the model has a calibrator."""
    y: NDArray[Any]
    """Their labels."""


@dataclass(frozen=True)
class NllDifference:
    """The NLL of the best head that uses samples without labels, minus that of the labels alone."""

    estimate: float
    low: float
    high: float
    level: float
    n: int


@dataclass(frozen=True)
class MixEstimate:
    """The estimated mix of the classes among samples without labels."""

    shares: NDArray[np.float64]
    """The share of each class, in the order of `classes_`."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    """The ends of their 95% intervals; NaN with more than 256 classes."""
    differs: bool
    """Whether the mix differs from that of the labels by more than both are uncertain (p ≤ 0.01)."""
    explained: bool | None
    """Whether the samples are otherwise like those of training, so that a change of the mix explains them; `None` if that cannot be
    tested: it takes 30 rows, and a fit with 2,500 unlabelled samples."""


class CalmixClassifier(Parameters, MetadataRequests):
    """Trains heads on embeddings, and keeps the one with the lowest out-of-fold NLL.

    Samples whose label is −1 are unlabelled, and are trained on too. `None`, NaN, pandas' NA, empty strings and masked entries
    of `numpy.ma` also mean that. With one vector per sample the heads are logistic regression (on the labels alone), a
    mixture of Gaussians fitted by EM with and without balanced classes, and an average. With several vectors per sample,
    X of shape (n, views, d), the first is the clean one, and the others are views for the method of `settings`.

    X may be a list of tables, `[X1, X2]`, with several sets of features of the same samples, such as those of two models. Each set is
    centred and scaled to the same length, and the heads are trained on all of them together.

    Comparing and calibrating heads takes labels that a head was trained without: at least two per class, and ten in all. With
    fewer, `fit` warns that the probabilities are not calibrated.

    Parameters
    ----------
    random_state : int, default=0
        The seed of the folds, and of training with views. The same seed gives the same bits on every machine.
    n_jobs : int or None, default=None
        Threads; `None` for one, −1 for all processors. The result does not depend on it.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of the classes in training: `"balanced"` for the same weight of each class, or a weight for each class. They move the
        head, not the calibrator, the guarantees and the choice of the head, which are about the labels as they are.
    settings : mapping or None, default=None
        Keys of the recipe `vectors` with their values, such as `{"labels.unlabelled_count": 0}` for no limit on the
        unlabelled samples, which is 20,000.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    feature_sets_ : list of int
        The number of features of each set.
    candidates_ : list of Candidate
        The heads that were compared.
    calibrator_ : dict or None
        The calibrator of the model; `None` if there are too few labels for one, of which `fit` warns.
    out_of_fold_ : OutOfFold
        Predictions for the training labels, each by a head that was trained without it; empty with one label per class.
    nll_difference_ : NllDifference or None
        What samples without labels changed; `None` if there are none, or too few labels.
    helped_ : bool or None
        Whether they helped: whether the 95% confidence interval of that difference is below 0.

    Examples
    --------
    >>> import numpy as np
    >>> from calmix import CalmixClassifier
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(3, size=600)
    >>> X = np.eye(3)[truth] * 4 + rng.normal(size=(600, 3))
    >>> y = np.where(np.arange(600) < 60, truth, -1)  # 60 labels
    >>> classifier = CalmixClassifier().fit(X[:400], y[:400])
    >>> classifier.predict_proba(X[400:]).shape
    (200, 3)
    >>> sets = classifier.predict_set(X[400:], coverage=0.9)
    >>> bool(sets[np.arange(200), truth[400:]].mean() > 0.85)
    True
    """

    _estimator_type = "classifier"

    classes_: NDArray[Any]
    n_features_in_: int
    feature_sets_: list[int]
    candidates_: list[Candidate]
    calibrator_: dict[str, Any] | None
    out_of_fold_: OutOfFold
    nll_difference_: NllDifference | None
    helped_: bool | None

    def __init__(
        self,
        *,
        random_state: int | None = 0,
        n_jobs: int | None = None,
        class_weight: ClassWeight = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.class_weight = class_weight
        self.settings = settings

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        drawn: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> CalmixClassifier:
        """Trains on the rows of X, with the labels y; −1 means unlabelled. A warning says if there are too few to calibrate.

        `groups` names what each row comes from, such as its patient, video, site or writer, by anything that can be compared.
        Rows of one group are never in different folds, and guarantees are about one row of a new group. `None`, NaN, pandas'
        NA, empty strings and masked entries mean that a row is a group of its own.

        `drawn` says how each label was drawn: `"random"`, `"chosen"`, `"by-class"`, or nothing if it is not known, which counts as
        random. Chosen labels are trained on; the calibrator, the guarantees and the choice of the head rest on the others.

        `sample_weight` weighs the labels in training: a label of weight 2 counts like two. It moves the head, not the calibrator, the
        guarantees and the choice of the head. A row of weight 0 is left out; weights of unlabelled rows mean nothing else.
        """
        names = _feature_names(X)
        vectors, sets = _vectors(X, views=True)
        n, views, width = vectors.shape
        codes, self.classes_ = encoded_classes(y, n)
        self.n_features_in_ = width
        self.feature_sets_ = sets
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        settings = {"train.seed": self.random_state or 0, **(self.settings or {})}
        if self.class_weight == "balanced":
            settings["labels.class_weight"] = "balanced"
        weights = label_weights(sample_weight, self.class_weight, codes, self.classes_)
        numbers = group_numbers(groups, n)
        draws = [] if drawn is None else [str(word or "") for word in values_or_none(drawn, n, "drawn")]
        kept = rows_with_weight(weights, codes, self.classes_)
        if kept is not None:
            vectors, codes, weights = vectors[kept], codes[kept], weights[kept]
            numbers = numbers[kept] if len(numbers) > 0 else numbers
            draws = [draws[row] for row in kept] if draws else draws
        fitted, description, rows, probabilities = _calmix.fit_classifier(
            vectors.reshape(len(vectors), views * width),
            views,
            codes,
            [str(name) for name in self.classes_],
            numbers,
            draws,
            weights,
            sets if len(sets) > 1 else [],
            as_settings(settings),
            self._threads(),
        )
        self._fitted = fitted
        described = json.loads(description)
        self._describe(described)
        labels = self.classes_[codes[rows]]
        rows = rows if kept is None else kept[rows].astype(np.uint64)
        self.out_of_fold_ = OutOfFold(rows, probabilities, labels)
        if described["uncalibrated"] is not None:
            warnings.warn(_uncalibrated(**described["uncalibrated"]), UserWarning, stacklevel=2)
        return self

    def _describe(self, description: dict[str, Any]) -> None:
        self.candidates_ = [Candidate(**head) for head in description["candidates"]]
        self.calibrator_ = next(head.calibrator for head in self.candidates_ if head.kept)
        difference = description["nll_difference"]
        self.nll_difference_ = None if difference is None else NllDifference(**difference)
        self.helped_ = None if self.nll_difference_ is None else self.nll_difference_.high < 0

    def predict_proba(self, X: ArrayLike, mix: Mix = None) -> NDArray[np.float32]:
        """Returns the probabilities of the classes, in the order of `classes_`; calibrated unless `calibrator_` is `None`.

        `mix` adapts them to another mix of classes: the shares of the classes, as a mapping or in the order of `classes_`, or
        `"estimate"` to estimate them from X. Estimated shares are used only if they differ from those of the labels and X is
        otherwise like the training data; `estimate_mix` has them.
        """
        vectors = self._checked(X)
        return self._model().probabilities(vectors, self._shares(vectors, mix), self._threads())

    def estimate_mix(self, X: ArrayLike) -> MixEstimate:
        """Returns the estimated shares of the classes among the rows of X, by maximum likelihood on calibrated probabilities."""
        return self._estimated(self._checked(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Returns the most probable class of each row."""
        columns = self.predict_proba(X).argmax(axis=1)
        return self.classes_[columns]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float32]:
        """Returns the logits before calibration; with two classes, those of the second minus those of the first."""
        logits = self._model().logits(self._checked(X))
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_set(
        self, X: ArrayLike, coverage: float = 0.9, *, rule: SetRule = "lac", mix: Mix = None
    ) -> NDArray[np.bool_]:
        """Returns which classes are in the prediction set of each row, as a table of shape (n, classes).

        A set contains the true class with a probability of at least `coverage`, on average over samples like the
        training labels. A warning says what the labels are too few for. With `mix`, as in `predict_proba`, it is an average over
        samples of that mix; with an estimated mix it is an estimate. `rule="aps"` is refused then.
        """
        vectors = self._checked(X)
        sets, missing = self._model().sets(vectors, coverage, rule, self._shares(vectors, mix), self._threads())
        if missing is not None:
            warnings.warn(missing, stacklevel=2)
        return sets

    def predict_or_abstain(
        self, X: ArrayLike, precision: float = 0.95, *, mix: Mix = None
    ) -> np.ma.MaskedArray[Any, Any]:
        """Returns the most probable class of each row, masked where the model abstains.

        At least the share `precision` of the answers is right, except with a probability of 10% over the draw of the
        training labels. A warning says if no threshold reaches the precision; every row is masked then. `mix` is that of
        `predict_proba`; the precision is then tested on labels thinned to the mix.
        """
        vectors = self._checked(X)
        shares = self._shares(vectors, mix)
        labels, abstain, missing = self._model().answers(vectors, precision, shares, self._threads())
        if missing is not None:
            warnings.warn(missing, stacklevel=2)
        return np.ma.masked_array(self.classes_[labels], mask=abstain)

    def predict_frame(
        self, X: Any, coverage: float = 0.9, precision: float = 0.95, *, rule: SetRule = "lac"
    ) -> Any:
        """Returns the answers as a data frame with the columns of `calmix predict --probabilities`.

        These are `label`, `confidence`, `set` (a list, the most probable class first), `abstain`, and `p(CLASS)` for each class.
        The frame is one of Polars or PyArrow if X is, otherwise of pandas, with the index of X if it has one. `coverage`,
        `precision` and the warnings are those of `predict_set` and `predict_or_abstain`.
        """
        probabilities = self.predict_proba(X)
        members = self.predict_set(X, coverage, rule=rule)
        answers = self.predict_or_abstain(X, precision)
        abstain = np.ma.getmaskarray(answers)
        confidence = probabilities.max(axis=1)
        return answer_frame(X, self.classes_, answers.data, confidence, probabilities, members, abstain)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Returns the accuracy on the labelled rows; those that `fit` takes for unlabelled are ignored."""
        predicted = self.predict(X)
        truth, unlabelled = present_labels(y, len(predicted))
        if len(truth) == 0:
            raise ValueError("y has no label, so there is no accuracy: −1 and missing values mean unlabelled")
        right = predicted[~unlabelled] == truth
        if sample_weight is None:
            return float(np.mean(right))
        weights = as_array(sample_weight, "sample_weight")
        if weights.shape != unlabelled.shape:
            raise ValueError(f"sample_weight has the shape {weights.shape}, but y has {len(unlabelled)} labels")
        return float(np.average(right, weights=weights[~unlabelled]))

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn calls this, so it is there.
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(three_d_array=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def _model(self) -> _calmix.Classifier:
        if not hasattr(self, "_fitted"):
            raise self._not_fitted("fit(X, y)")
        return self._fitted

    def _estimated(self, vectors: NDArray[np.float32]) -> MixEstimate:
        found = json.loads(self._model().estimate_mix(vectors))
        intervals = np.array(found["intervals"] or np.full((len(self.classes_), 2), np.nan))
        return MixEstimate(
            np.array(found["shares"]), intervals[:, 0], intervals[:, 1], found["differs"], found["is_explained"]
        )

    def _shares(self, vectors: NDArray[np.float32], mix: Mix) -> list[float] | None:
        """The shares that predictions are adapted to; `None` if they are not."""
        if mix is None:
            return None
        if isinstance(mix, str):
            if mix != "estimate":
                raise ValueError(f"mix is {mix!r}, but must be 'estimate' or the shares of the classes")
            estimate = self._estimated(vectors)
            if estimate.explained is False:
                message = "X is unlike the training data, which no mix of classes explains: the predictions are not adapted"
                warnings.warn(message, stacklevel=3)
                return None
            return estimate.shares.tolist() if estimate.differs else None
        if isinstance(mix, Mapping):
            names = self.classes_.tolist()
            if unknown := [name for name in mix if name not in names]:
                raise ValueError(f"mix has a share of {unknown[0]!r}, which is not a class of the classifier")
            if missing := [name for name in names if name not in mix]:
                raise ValueError(f"mix has no share of {missing[0]!r}")
            return [float(mix[name]) for name in names]
        shares = np.asarray(mix, dtype=np.float64)
        if shares.ndim != 1:
            raise ValueError(f"mix has the shape {shares.shape}, but is a share for each class")
        return shares.tolist()

    def _threads(self) -> int:
        return thread_count(self.n_jobs)

    def _checked(self, X: ArrayLike) -> NDArray[np.float32]:
        self._model()
        self._check_names(_feature_names(X))
        vectors, sets = _vectors(X, views=False)
        vectors = vectors[:, 0, :]
        # A single table may have the features of all sets, joined.
        if len(sets) > 1 and sets != self.feature_sets_:
            raise ValueError(f"X has sets of {sets} features, but CalmixClassifier is expecting {self.feature_sets_}")
        if vectors.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {vectors.shape[1]} features, but CalmixClassifier is expecting {self.n_features_in_} "
                "features as input"
            )
        return vectors

    def _check_names(self, names: NDArray[Any] | None) -> None:
        """Compares the names of the columns with those of the fit, in the words of scikit-learn."""
        before: NDArray[Any] | None = getattr(self, "feature_names_in_", None)
        if names is None and before is None:
            return
        if names is None:
            warnings.warn(
                "X does not have valid feature names, but CalmixClassifier was fitted with feature names", stacklevel=4
            )
        elif before is None:
            warnings.warn("X has feature names, but CalmixClassifier was fitted without feature names", stacklevel=4)
        elif list(names) != list(before):
            message = "The feature names should match those that were passed during fit.\n"
            unexpected = sorted(set(names) - set(before))
            missing = sorted(set(before) - set(names))
            if unexpected:
                message += "Feature names unseen at fit time:\n" + "".join(f"- {name}\n" for name in unexpected)
            if missing:
                message += "Feature names seen at fit time, yet now missing:\n"
                message += "".join(f"- {name}\n" for name in missing)
            if not unexpected and not missing:
                message += "Feature names must be in the same order as they were in fit.\n"
            raise ValueError(message)


def _uncalibrated(held_out: int, min_labels: int) -> str:
    """Why there is no calibrator, and what to do."""
    return (
        f"The probabilities are not calibrated: a calibrator is fitted on at least {min_labels} labels, each predicted by a head "
        f"that was trained without it, and y has {held_out} such labels (a class with a single label has none). Add labels: "
        f"at least two per class, and {min_labels} in all."
    )


def _vectors(X: ArrayLike, *, views: bool) -> tuple[NDArray[np.float32], list[int]]:
    """X as float32 of shape (n, views, d), with the widths of its sets of features; the views are 1 if it has two dimensions."""
    sets = feature_sets(X)
    tables = [_table(X, views=views)] if sets is None else [_table(table, views=views) for table in sets]
    return joined(tables), [table.shape[-1] for table in tables]


def _table(X: ArrayLike, *, views: bool) -> NDArray[np.float32]:
    """One set of features as float32 of shape (n, views, d)."""
    array = as_rows(X, "X")
    if array.dtype.kind == "O":
        pandas = sys.modules.get("pandas")
        if pandas is not None:
            # pandas' NA is not a number, not even NaN.
            array = np.where(pandas.isna(array), np.nan, array)
        try:
            array = array.astype(np.float64)
        except TypeError as error:
            raise TypeError(f"{error}: argument must be a string or a number, and X has other objects") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"X: dtype={array.dtype} is not numeric")
    if array.ndim != 2 and (array.ndim != 3 or not views):
        shape = "2D array of shape (n, d), or 3D of shape (n, views, d)" if views else "2D array of shape (n, d)"
        raise ValueError(
            f"Expected {shape}, got {array.ndim}D array instead. Reshape your data: X.reshape(-1, 1) if it has a single "
            "feature, X.reshape(1, -1) if it is a single sample"
        )
    if array.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required.")
    if array.shape[-1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    if array.ndim == 2:
        array = array[:, np.newaxis, :]
    return as_vectors(array, "X")


def _feature_names(X: object) -> NDArray[Any] | None:
    """The names of the columns of a data frame, if all are strings."""
    columns = column_names(X)
    if columns is None:
        return None
    names = np.asarray(columns, dtype=object)
    are_strings = [isinstance(name, str) for name in names]
    if any(are_strings) and not all(are_strings):
        raise TypeError("Feature names are only supported if all input features have string names: rename the columns")
    return names if all(are_strings) and len(names) > 0 else None
