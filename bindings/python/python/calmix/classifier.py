"""A classifier of embeddings, in the conventions of scikit-learn, which it does not need."""

from __future__ import annotations

import inspect
import json
import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix import _calmix
from calmix.arrays import as_array
from calmix.settings import as_settings

SetRule = Literal["lac", "aps", "lac-by-class"]


@dataclass(frozen=True)
class Candidate:
    """A head that was trained and compared with others."""

    name: str
    """`logistic-regression`, `em`, `balanced-em` or `lr-em`; with views `recipe` or `labels-alone`."""
    uses_unlabelled: bool
    """Whether it was trained on samples without labels too."""
    kept: bool
    """Whether it is the model."""
    nll: float | None
    """Mean negative log-likelihood of the labels out of fold, in nats; `None` if there are too few labels for folds."""
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
    """Their calibrated probabilities, in the order of `classes_`."""
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


class CalmixClassifier:
    """Trains heads on embeddings, and keeps the one with the lowest out-of-fold NLL.

    Samples whose label is −1 are unlabelled, and are trained on too. In labels that are not integers, `None`, NaN and
    empty strings also mean that. With one vector per sample the heads are logistic regression (on the labels alone), a
    mixture of Gaussians fitted by EM with and without balanced classes, and an average. With several vectors per sample,
    X of shape (n, views, d), the first is the clean one, and the others are views for the method of `settings`.

    Parameters
    ----------
    random_state : int, default=0
        The seed of the folds, and of training with views. The same seed gives the same bits on every machine.
    n_jobs : int or None, default=None
        Threads; `None` for one, −1 for all processors. The result does not depend on it.
    settings : mapping or None, default=None
        Keys of the recipe `vectors` with their values, such as `{"labels.unlabelled_count": 0}` for no limit on the
        unlabelled samples, which is 20,000.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    candidates_ : list of Candidate
        The heads that were compared.
    calibrator_ : dict or None
        The calibrator of the model; `None` if there are too few labels for one.
    out_of_fold_ : OutOfFold
        Predictions for the training labels, each by a head that was trained without it.
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
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.settings = settings

    def fit(self, X: ArrayLike, y: ArrayLike) -> CalmixClassifier:
        """Trains on the rows of X, with the labels y; −1 means unlabelled."""
        names = _feature_names(X)
        vectors = _vectors(X, views=True)
        n, views, width = vectors.shape
        codes, self.classes_ = _encoded(y, n)
        self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        settings = {"train.seed": self.random_state or 0, **(self.settings or {})}
        fitted, description, rows, probabilities = _calmix.fit_classifier(
            vectors.reshape(n, views * width),
            views,
            codes,
            [str(name) for name in self.classes_],
            as_settings(settings),
            self._threads(),
        )
        self._fitted = fitted
        self._describe(json.loads(description))
        self.out_of_fold_ = OutOfFold(rows, probabilities, self.classes_[codes[rows]])
        return self

    def _describe(self, description: dict[str, Any]) -> None:
        self.candidates_ = [Candidate(**head) for head in description["candidates"]]
        self.calibrator_ = next(head.calibrator for head in self.candidates_ if head.kept)
        difference = description["nll_difference"]
        self.nll_difference_ = None if difference is None else NllDifference(**difference)
        self.helped_ = None if self.nll_difference_ is None else self.nll_difference_.high < 0

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float32]:
        """Returns the calibrated probabilities of the classes, in the order of `classes_`."""
        return self._model().probabilities(self._checked(X), self._threads())

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Returns the most probable class of each row."""
        columns = self.predict_proba(X).argmax(axis=1)
        return self.classes_[columns]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float32]:
        """Returns the logits before calibration; with two classes, those of the second minus those of the first."""
        logits = self._model().logits(self._checked(X))
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_set(
        self, X: ArrayLike, coverage: float = 0.9, *, rule: SetRule = "lac"
    ) -> NDArray[np.bool_]:
        """Returns which classes are in the prediction set of each row, as a table of shape (n, classes).

        A set contains the true class with a probability of at least `coverage`, on average over samples like the
        training labels. A warning says what the labels are too few for.
        """
        sets, missing = self._model().sets(self._checked(X), coverage, rule, self._threads())
        if missing is not None:
            warnings.warn(missing, stacklevel=2)
        return sets

    def predict_or_abstain(self, X: ArrayLike, precision: float = 0.95) -> np.ma.MaskedArray[Any, Any]:
        """Returns the most probable class of each row, masked where the model abstains.

        At least the share `precision` of the answers is right, except with a probability of 10% over the draw of the
        training labels. A warning says if no threshold reaches the precision; every row is masked then.
        """
        labels, abstain, missing = self._model().answers(self._checked(X), precision, self._threads())
        if missing is not None:
            warnings.warn(missing, stacklevel=2)
        return np.ma.masked_array(self.classes_[labels], mask=abstain)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Returns the accuracy."""
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the parameters of the constructor."""
        del deep  # No parameter is an estimator.
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **params: object) -> CalmixClassifier:
        """Sets parameters of the constructor."""
        for name, value in params.items():
            if name not in _parameters():
                raise ValueError(f"Invalid parameter {name!r} for {self!r}. Valid parameters are: {_parameters()}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {
            name: value for name, value in self.get_params().items() if value is not _parameters()[name].default
        }
        return f"CalmixClassifier({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

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
            raise _not_fitted("This CalmixClassifier is not fitted yet: call fit(X, y) first")
        return self._fitted

    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        processors = os.cpu_count() or 1
        return max(1, self.n_jobs if self.n_jobs > 0 else processors + 1 + self.n_jobs)

    def _checked(self, X: ArrayLike) -> NDArray[np.float32]:
        self._model()
        self._check_names(_feature_names(X))
        vectors = _vectors(X, views=False)[:, 0, :]
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


def _parameters() -> Mapping[str, inspect.Parameter]:
    parameters = inspect.signature(CalmixClassifier.__init__).parameters
    return {name: parameter for name, parameter in parameters.items() if name != "self"}


def _vectors(X: ArrayLike, *, views: bool) -> NDArray[np.float32]:
    """X as float32 of shape (n, views, d); the views are 1 if it has two dimensions."""
    array = as_array(X, "X")
    if array.dtype.kind == "O":
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
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(vectors).all(axis=(1, 2))
    if not finite.all():
        row = int(finite.argmin())
        raise ValueError(f"X: row {row} contains NaN, infinity or a value too large for dtype('float32')")
    return vectors


def _encoded(y: ArrayLike, rows: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The number of the class of each label, −1 without one, and the classes."""
    if y is None:
        raise ValueError("CalmixClassifier requires y to be passed, but the target y is None")
    labels = as_array(y, "y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        warning = _sklearn("exceptions", "DataConversionWarning") or UserWarning
        warnings.warn("A column-vector y was passed when a 1d array was expected: pass y.ravel()", warning, stacklevel=3)
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead")
    if len(labels) != rows:
        raise ValueError(f"X has {rows} rows, but y has {len(labels)} labels: inconsistent numbers of samples")
    unlabelled = _unlabelled(labels)
    classes, codes = np.unique(labels[~unlabelled], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has {len(classes)} class(es) beside −1, which means unlabelled; at least two are needed")
    if labels.dtype.kind == "f" and (classes == classes.astype(np.int64)).all():
        classes = classes.astype(np.int64).astype(labels.dtype)
    elif labels.dtype.kind == "f":
        raise ValueError("Unknown label type: continuous. y has fractions, and a classifier needs classes")
    encoded = np.full(rows, -1, dtype=np.int64)
    encoded[~unlabelled] = codes
    return encoded, classes


def _unlabelled(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which samples have no label."""
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
        return np.array([label is None or label != label or label in (-1, "", "-1") for label in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


def _feature_names(X: object) -> NDArray[Any] | None:
    """The names of the columns of a data frame, if all are strings."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = np.asarray(columns, dtype=object)
    are_strings = [isinstance(name, str) for name in names]
    if any(are_strings) and not all(are_strings):
        raise TypeError("Feature names are only supported if all input features have string names: rename the columns")
    return names if all(are_strings) and len(names) > 0 else None


def _sklearn(module: str, name: str) -> Any:
    """An object of scikit-learn, if it was imported: its users catch its exceptions."""
    if "sklearn" not in sys.modules:
        return None
    from importlib import import_module

    return getattr(import_module(f"sklearn.{module}"), name)


def _not_fitted(message: str) -> Exception:
    error = _sklearn("exceptions", "NotFittedError")
    return AttributeError(message) if error is None else error(message)
