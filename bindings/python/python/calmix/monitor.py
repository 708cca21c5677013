"""An alarm for new samples that are no longer like those of before, around any model."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix import _calmix
from calmix.arrays import as_array
from calmix.labelled_probabilities import checked, probability_rows
from calmix.parameters import Parameters


@dataclass(frozen=True)
class MonitorState:
    """The evidence after some batches."""

    alarm: bool
    """Whether the capital has ever reached 100."""
    log10_capital: float
    """The common logarithm of the capital now: 0 at the start, 2 is the alarm."""
    highest: float
    """The highest such logarithm so far."""
    rows: int
    batches: int
    alarm_row: int | None
    """The row that raised the alarm, counted from 1 over all batches; rows of a batch count in a random order."""


class Monitor(Parameters):
    """Raises an alarm if the scores of new rows are no longer like those of a reference.

    The alarm may be looked at after every batch: as long as nothing changes, it is ever raised with a probability of at most 1%,
    over all batches together (a conformal test martingale). It compares scores alone, one number per row, such as an anomaly score
    or a confidence: a change that no score shows is not found, and one that is harmless may be.

    Parameters
    ----------
    random_state : int, default=0
        The seed of the order of rows in a batch and of the ranks of equal scores.

    Attributes
    ----------
    state_ : MonitorState
        The evidence so far.

    Examples
    --------
    >>> import numpy as np
    >>> from calmix import Monitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor().fit(rng.normal(size=500))
    >>> monitor.update(rng.normal(size=200)).alarm
    False
    >>> monitor = Monitor.from_json(monitor.to_json())  # on the next day
    >>> monitor.update(rng.normal(1, 1, size=200)).alarm
    True
    """

    def __init__(self, *, random_state: int | None = 0) -> None:
        self.random_state = random_state

    def fit(self, reference: ArrayLike, y: object = None) -> Monitor:
        """Starts with the reference: scores, or rows of probabilities, whose score is their confidence.

        The model must not have been trained on the rows of the reference, or their scores differ from those of new rows. `y` is
        ignored.
        """
        del y
        array = as_array(reference, "reference")
        self.n_classes_ = array.shape[1] if array.ndim == 2 else None
        self._martingale = _calmix.Martingale.start(self._scores(array), self.random_state or 0)
        return self

    def update(self, batch: ArrayLike) -> MonitorState:
        """Adds a batch of new rows, in the form of the reference, and returns the evidence so far."""
        self._fitted().update(self._scores(as_array(batch, "batch")))
        return self.state_

    @property
    def state_(self) -> MonitorState:
        """The evidence so far."""
        rows, batches, now, highest, alarm_row = self._fitted().state()
        ln_10 = math.log(10)
        return MonitorState(alarm_row is not None, now / ln_10, highest / ln_10, rows, batches, alarm_row)

    def to_json(self) -> str:
        """Returns the state as JSON, a few thousand numbers however many rows there were."""
        state = {"random_state": self.random_state, "classes": self.n_classes_, "martingale": json.loads(self._fitted().to_json())}
        return json.dumps(state)

    @classmethod
    def from_json(cls, text: str) -> Monitor:
        """Continues from the state that `to_json` returned.

        Raises
        ------
        ValueError
            If it is not such a state.
        """
        try:
            state: Any = json.loads(text)
            classes = state["classes"]
            seed = state["random_state"]
            martingale = _calmix.Martingale(json.dumps(state["martingale"]).encode())
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"this is not the state of a Monitor: {error}") from error
        if any(type(value) not in (int, type(None)) for value in (classes, seed)):
            raise ValueError("this is not the state of a Monitor: `classes` and `random_state` must be whole numbers or null")
        monitor = cls(random_state=seed)
        monitor.n_classes_ = classes
        monitor._martingale = martingale
        return monitor

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_martingale")

    def _fitted(self) -> _calmix.Martingale:
        if not hasattr(self, "_martingale"):
            raise self._not_fitted("fit(reference)")
        return self._martingale

    def _scores(self, array: NDArray[Any]) -> NDArray[np.float64]:
        if array.ndim == 1 and self.n_classes_ is None:
            if array.dtype.kind not in "biuf":
                raise ValueError(f"scores: dtype={array.dtype} is not numeric")
            return np.ascontiguousarray(array, dtype=np.float64)
        if array.ndim != 2 or self.n_classes_ is None:
            form = "scores" if self.n_classes_ is None else f"rows of {self.n_classes_} probabilities"
            raise ValueError(f"expected {form}, as the reference has them, but got the shape {array.shape}")
        rows = probability_rows(array, self.n_classes_)
        # A row is strange if its confidence is low.
        return -checked(rows, lambda: _calmix.answer_scores(rows))
