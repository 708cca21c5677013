"""Measures of calibration with confidence intervals, and calibrators.

Measures take arguments in the order of scikit-learn, `ece(y_true, y_prob)`. Probabilities are positional; logits are passed
by name, and neither is ever guessed. float64 is computed in float64. With `interval=0.95` a measure returns an `Estimate`
with a 95% confidence interval instead of a number.

>>> import numpy as np
>>> from calmix.calibration import brier_score, ece
>>> y_true = np.array([0, 1, 1, 0])
>>> y_prob = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
>>> round(ece(y_true, y_prob), 6)
0.3
>>> round(brier_score(y_true, y_prob), 6)
0.25
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, overload

from numpy.typing import ArrayLike

from calmix import _calmix
from calmix.calibrators import IsotonicCalibration, TemperatureScaling, VectorScaling
from calmix.rows import encoded_labels, one_of, refuse_invalid

if TYPE_CHECKING:
    # Type checkers have it; `typing` only since Python 3.11.
    from typing_extensions import Unpack

__all__ = [
    "Estimate",
    "IsotonicCalibration",
    "ReliabilityBin",
    "TemperatureScaling",
    "VectorScaling",
    "aurc",
    "brier_score",
    "class_wise_ece",
    "confidence_gap",
    "debiased_squared_error",
    "ece",
    "error",
    "nll",
    "reliability_bins",
    "smooth_ece",
]

Edges = Literal["left", "right"]
Binning = Literal["width", "mass"]


@dataclass(frozen=True)
class Estimate:
    """A measure with its confidence interval."""

    value: float
    low: float
    high: float
    level: float

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class ReliabilityBin:
    """The predictions whose confidence is in one bin."""

    count: int
    confidence: float
    """Their mean confidence."""
    accuracy: float
    """The share of them that is right."""


class Options(TypedDict, total=False):
    """Options of every measure."""

    logits: ArrayLike | None
    labels: Sequence[Any] | None
    random_state: int


class ClassWiseOptions(Options, total=False):
    """Options of a measure with bins of equal width."""

    bins: int
    edges: Edges


class BinnedOptions(ClassWiseOptions, total=False):
    """Options of a measure with bins of equal width or equal numbers of samples."""

    binning: Binning


class Measure(Protocol):
    """A measure of predictions: a number, or with `interval` an `Estimate`."""

    @overload
    def __call__(
        self, y_true: ArrayLike, y_prob: ArrayLike | None = None, *, interval: None = None, **options: Unpack[Options]
    ) -> float: ...
    @overload
    def __call__(
        self, y_true: ArrayLike, y_prob: ArrayLike | None = None, *, interval: float, **options: Unpack[Options]
    ) -> Estimate: ...


class ClassWiseMeasure(Protocol):
    """A measure with bins of equal width."""

    @overload
    def __call__(
        self, y_true: ArrayLike, y_prob: ArrayLike | None = None, *, interval: None = None, **options: Unpack[ClassWiseOptions]
    ) -> float: ...
    @overload
    def __call__(
        self, y_true: ArrayLike, y_prob: ArrayLike | None = None, *, interval: float, **options: Unpack[ClassWiseOptions]
    ) -> Estimate: ...


class BinnedMeasure(Protocol):
    """A measure with bins of equal width or equal numbers of samples."""

    @overload
    def __call__(
        self, y_true: ArrayLike, y_prob: ArrayLike | None = None, *, interval: None = None, **options: Unpack[BinnedOptions]
    ) -> float: ...
    @overload
    def __call__(
        self, y_true: ArrayLike, y_prob: ArrayLike | None = None, *, interval: float, **options: Unpack[BinnedOptions]
    ) -> Estimate: ...


# The decorators give a function its type: the overloads above, once for all measures instead of thrice for each.


def _plain(function: Callable[..., Any]) -> Measure:
    return function


def _class_wise(function: Callable[..., Any]) -> ClassWiseMeasure:
    return function


def _binned(function: Callable[..., Any]) -> BinnedMeasure:
    return function


@_binned
def ece(
    y_true, y_prob=None, *, logits=None, labels=None, bins=15, binning="width", edges="left", interval=None, random_state=0
):
    """Expected calibration error of the predicted class (Naeini et al. 2015; Guo et al. 2017).

    The mean distance between confidence and accuracy over `bins` bins of equal width, or with `binning="mass"` of equal
    numbers of samples. `edges="left"` puts a confidence on an edge into the bin above it, as in [0.1, 0.2), and 1 into the
    last; `"right"` into the bin below, as the code of Guo et al. does. ECE is biased upwards on few
    samples, and so is its bootstrap interval; `debiased_squared_error` is not."""
    return _measure(
        "ece", y_true, y_prob, logits, labels, interval, random_state, bins=bins, binning=binning, edges=edges
    )


@_class_wise
def class_wise_ece(y_true, y_prob=None, *, logits=None, labels=None, bins=15, edges="left", interval=None, random_state=0):
    """Mean over classes of the calibration error of each class's probability (Kull et al. 2019), with `bins` bins
    of equal width."""
    return _measure("class_wise_ece", y_true, y_prob, logits, labels, interval, random_state, bins=bins, edges=edges)


@_plain
def smooth_ece(y_true, y_prob=None, *, logits=None, labels=None, interval=None, random_state=0):
    """Calibration error without bins (Błasiok and Nakkiran 2023), as in the package relplot. An interval takes seconds."""
    return _measure("smooth_ece", y_true, y_prob, logits, labels, interval, random_state)


@_binned
def debiased_squared_error(
    y_true, y_prob=None, *, logits=None, labels=None, bins=15, binning="width", edges="left", interval=None, random_state=0
):
    """Squared calibration error of `bins` bins, with the bias of sampling noise removed (Kumar et al. 2019); it may be
    negative."""
    return _measure(
        "debiased_squared_error", y_true, y_prob, logits, labels, interval, random_state, bins=bins, binning=binning, edges=edges
    )


@_plain
def confidence_gap(y_true, y_prob=None, *, logits=None, labels=None, interval=None, random_state=0):
    """Mean confidence minus accuracy: positive if the model is over-confident."""
    return _measure("confidence_gap", y_true, y_prob, logits, labels, interval, random_state)


@_plain
def error(y_true, y_prob=None, *, logits=None, labels=None, interval=None, random_state=0):
    """Share of wrong predictions; of equal probabilities, the first is the prediction. Its interval is exact
    (Clopper and Pearson)."""
    return _measure("error", y_true, y_prob, logits, labels, interval, random_state)


@_plain
def nll(y_true, y_prob=None, *, logits=None, labels=None, interval=None, random_state=0):
    """Mean negative log-likelihood, in nats: scikit-learn's `log_loss`. A true class of probability 0 makes it infinite;
    scikit-learn clips."""
    return _measure("nll", y_true, y_prob, logits, labels, interval, random_state)


@_plain
def brier_score(y_true, y_prob=None, *, logits=None, labels=None, interval=None, random_state=0):
    """Brier score: the squared distance to the true class, summed over classes, from 0 to 2: scikit-learn's
    `brier_score_loss(scale_by_half=False)`."""
    return _measure("brier_score", y_true, y_prob, logits, labels, interval, random_state)


@_plain
def aurc(y_true, y_prob=None, *, logits=None, labels=None, interval=None, random_state=0):
    """Area under the risk-coverage curve: the mean error as the least confident predictions are dropped one by one."""
    return _measure("aurc", y_true, y_prob, logits, labels, interval, random_state)


def reliability_bins(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    labels: Sequence[Any] | None = None,
    bins: int = 15,
    binning: Binning = "width",
    edges: Edges = "left",
) -> list[ReliabilityBin]:
    """Returns the bins of a reliability diagram, without the empty ones."""
    rows, are_logits = one_of(y_prob, logits)
    codes, _ = encoded_labels(y_true, rows, labels)
    how = (_bins(bins), _is_by_mass(binning), _is_right(edges))
    try:
        found = _calmix.reliability_bins(rows, are_logits, codes, *how)
    except ValueError:
        refuse_invalid(rows, are_logits)
        raise
    return [ReliabilityBin(*each) for each in found]


def _measure(
    name: str,
    y_true: ArrayLike,
    y_prob: ArrayLike | None,
    logits: ArrayLike | None,
    labels: Sequence[Any] | None,
    interval: float | None,
    random_state: int,
    *,
    bins: int = 15,
    binning: Binning = "width",
    edges: Edges = "left",
) -> Any:
    rows, are_logits = one_of(y_prob, logits)
    codes, _ = encoded_labels(y_true, rows, labels)
    if interval is not None and not 0 < interval < 1:
        raise ValueError(f"interval is the confidence level, between 0 and 1, such as 0.95; got {interval}")
    how = (_bins(bins), _is_by_mass(binning), _is_right(edges))
    try:
        value, bounds = _calmix.measure(name, rows, are_logits, codes, *how, interval, random_state)
    except ValueError:
        refuse_invalid(rows, are_logits)
        raise
    return value if interval is None else Estimate(value, *bounds, interval)


def _bins(bins: int) -> int:
    if not 1 <= bins <= 65535:
        raise ValueError(f"bins must be from 1 to 65,535; got {bins}")
    return bins


def _is_by_mass(binning: Binning) -> bool:
    if binning not in ("width", "mass"):
        raise ValueError(f'binning must be "width" or "mass"; got {binning!r}')
    return binning == "mass"


def _is_right(edges: Edges) -> bool:
    if edges not in ("left", "right"):
        raise ValueError(f'edges must be "left" or "right"; got {edges!r}')
    return edges == "right"
