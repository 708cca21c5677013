"""Calibrators: fitted on logits and true classes, they turn logits into calibrated probabilities."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix import _calmix
from calmix.arrays import as_array
from calmix.rows import encoded_labels, table


class _Calibrator:
    """What the calibrators share: they are fitted on logits and true classes, and give probabilities."""

    _kind = ""
    _penalised = False
    classes_: NDArray[Any]

    def fit(self, logits: ArrayLike, y: ArrayLike) -> Any:
        """Fits on rows of logits and their true classes, which the model was not trained on.

        Columns are the classes of y in ascending order. For probabilities, pass their logarithms.
        """
        rows = table(logits, "logits")
        self.classes_ = np.unique(as_array(y, "y"))
        labels = None if len(self.classes_) != rows.shape[1] else self.classes_.tolist()
        if labels is None:
            # A class without a label here: only numbers of columns say which it is.
            self.classes_ = np.arange(rows.shape[1])
        codes, _ = encoded_labels(y, rows, labels)
        self._fitted = _calmix.fit_calibrator(self._kind, rows.astype(np.float32), codes, self._penalised)
        return self

    def predict_proba(self, logits: ArrayLike) -> NDArray[np.float32]:
        """Returns the calibrated probabilities of rows of logits."""
        return self._calibrator().probabilities(table(logits, "logits").astype(np.float32))

    def predict(self, logits: ArrayLike) -> NDArray[Any]:
        """Returns the most probable class of each row."""
        columns = self.predict_proba(logits).argmax(axis=1)
        return self.classes_[columns]

    def _calibrator(self) -> _calmix.Calibrator:
        if not hasattr(self, "_fitted"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: call fit(logits, y) first")
        return self._fitted

    def _numbers(self) -> dict[str, Any]:
        return json.loads(self._calibrator().to_json())


class TemperatureScaling(_Calibrator):
    """Divides logits by one number, the temperature that minimises the NLL (Guo et al. 2017).

    With `penalised=True`, a penalty keeps the temperature near 1 while there are few labels, as in the models of calmix.

    >>> logits = np.array([[4.0, 0.0], [0.0, 4.0], [4.0, 0.0], [4.0, 0.0]] * 10)
    >>> round(TemperatureScaling().fit(logits, [0, 1, 0, 1] * 10).temperature_, 3)
    3.641
    """

    _kind = "temperature"

    def __init__(self, *, penalised: bool = False) -> None:
        self._penalised = penalised

    @property
    def temperature_(self) -> float:
        """The temperature."""
        return self._numbers()["temperature"]


class VectorScaling(_Calibrator):
    """Scales and shifts the logit of each class (Guo et al. 2017). It may change predictions."""

    _kind = "vector"

    @property
    def scale_(self) -> NDArray[np.float64]:
        """The factor of each class."""
        return np.array(self._numbers()["scale"])

    @property
    def bias_(self) -> NDArray[np.float64]:
        """What is added to the logit of each class."""
        return np.array(self._numbers()["bias"])


class IsotonicCalibration(_Calibrator):
    """Replaces the confidence of the predicted class by an isotonic regression; the other probabilities keep their ratios."""

    _kind = "isotonic"
