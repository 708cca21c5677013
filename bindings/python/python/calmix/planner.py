"""The planner of CalibrateMix and its base algorithms, for training loops of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calmix import _calmix
from calmix.arrays import as_array
from calmix.settings import as_settings


@dataclass(frozen=True)
class Plan:
    """What a training step does: labels, weights and pairs, without tensors.

    Rows of a mixture count the labelled rows of the batch first, then the unlabelled ones in their weak view.
    """

    pseudo_labels: NDArray[np.int64]
    """The pseudo-label of each unlabelled row."""
    pseudo_weights: NDArray[np.float32]
    """Its weight in the loss of the strong view, in [0, 1]."""
    fairness_target: NDArray[np.float32]
    """The target of FreeMatch's fairness term, one number per class; empty for other algorithms."""
    first: NDArray[np.int64]
    """The row of each mixture that `mix_lambda` multiplies."""
    second: NDArray[np.int64]
    """The row that 1 − `mix_lambda` multiplies."""
    mix_lambda: NDArray[np.float32]
    """The share of the first row."""
    mix_weights: NDArray[np.float32]
    """The factor of each mixture in the mixup loss."""
    targets: NDArray[np.float32]
    """The target of each mixture, one number per class."""


class Planner:
    """Plans training steps: pseudo-labels, which samples are easy or hard, and which are mixed.

    Each step has the same four calls: run the network on the batch without a gradient, `plan` with its outputs, make the
    step of the optimiser, `commit`. The state of every sample is in here, so `state_dict` belongs into a checkpoint.

    Parameters
    ----------
    classes : int
        The number of classes.
    labelled, unlabelled : sequence of int
        The ids of the samples. A sample may be in both.
    steps : int
        The number of steps of the whole training; the mixup term starts at a share of it.
    seed : int, default=0
        The seed of everything that is drawn.
    settings : mapping or None, default=None
        Keys of a recipe, such as `{"method.base": "softmatch", "method.mixup.pairing": "calibratemix"}`.
    """

    def __init__(
        self,
        classes: int,
        labelled: Sequence[int] | NDArray[np.integer],
        unlabelled: Sequence[int] | NDArray[np.integer],
        *,
        steps: int,
        seed: int = 0,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        ids = [[int(sample) for sample in samples] for samples in (labelled, unlabelled)]
        self._planner = _calmix.Planner(classes, ids[0], ids[1], steps, seed, as_settings(settings or {}))

    @property
    def loss_weights(self) -> dict[str, float]:
        """The weight of each term of the loss, by name."""
        return self._planner.loss_weights

    def plan(
        self,
        step: int,
        *,
        labelled_ids: ArrayLike,
        labels: ArrayLike,
        labelled_logits: ArrayLike,
        unlabelled_ids: ArrayLike,
        unlabelled_logits: ArrayLike,
        labelled_features: ArrayLike | None = None,
        unlabelled_features: ArrayLike | None = None,
    ) -> Plan:
        """Plans step `step`, from 0, from the outputs of the network for labelled rows and weak views.

        `*_features` are the vectors on which similarity is measured, such as the pooled features before the last layer;
        without guided pairs they are not needed.
        """
        plan = self._planner.plan(
            step,
            _ids(labelled_ids, "labelled_ids"),
            np.ascontiguousarray(as_array(labels, "labels"), dtype=np.int64),
            _rows(labelled_logits, "labelled_logits"),
            _rows(labelled_features, "labelled_features", like=labelled_ids),
            _ids(unlabelled_ids, "unlabelled_ids"),
            _rows(unlabelled_logits, "unlabelled_logits"),
            _rows(unlabelled_features, "unlabelled_features", like=unlabelled_ids),
        )
        # Indices of tensors are signed.
        plan["first"] = plan["first"].astype(np.int64)
        plan["second"] = plan["second"].astype(np.int64)
        return Plan(**plan)

    def commit(self) -> None:
        """Ends a step that was made."""
        self._planner.commit()

    def undo(self) -> None:
        """Discards the plan of a step that was not made, such as one whose loss is not finite."""
        self._planner.undo()

    def state_dict(self) -> dict[str, bytes]:
        """Returns the state of the method and of every sample."""
        return self._planner.state()

    def load_state_dict(self, state: Mapping[str, bytes]) -> None:
        """Restores the state of a planner with the same arguments."""
        self._planner.load(state["method"], state["labelled"], state["unlabelled"])


def _ids(ids: ArrayLike, name: str) -> NDArray[np.uint64]:
    array = as_array(ids, name)
    if array.dtype.kind not in "iu" or (array.size and array.min() < 0):
        raise ValueError(f"{name} must be whole numbers from 0")
    return np.ascontiguousarray(array, dtype=np.uint64)


def _rows(rows: ArrayLike | None, name: str, *, like: ArrayLike | None = None) -> NDArray[np.float32]:
    if rows is None:
        return np.empty((0 if like is None else len(as_array(like, name)), 0), dtype=np.float32)
    array = np.ascontiguousarray(as_array(rows, name), dtype=np.float32)
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, one row per sample; it has {array.ndim}")
    return array
