"""The native part of calmix."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str
SUM_TOLERANCE: float

class Classifier:
    def __init__(self, info: bytes, head: bytes, projection: bytes, reference: bytes | None = None) -> None: ...
    def logits(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]: ...
    def probabilities(
        self, vectors: NDArray[np.float32], mix: list[float] | None, threads: int
    ) -> NDArray[np.float32]: ...
    def estimate_mix(self, vectors: NDArray[np.float32]) -> str: ...
    def sets(
        self, vectors: NDArray[np.float32], coverage: float, rule: str, mix: list[float] | None, threads: int
    ) -> tuple[NDArray[np.bool_], str | None]: ...
    def answers(
        self, vectors: NDArray[np.float32], precision: float, mix: list[float] | None, threads: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_], str | None]: ...

def fit_classifier(
    vectors: NDArray[np.float32],
    views: int,
    labels: NDArray[np.int64],
    classes: list[str],
    groups: NDArray[np.uint32],
    drawn: list[str],
    settings: list[tuple[str, str]],
    threads: int,
) -> tuple[Classifier, str, NDArray[np.uint64], NDArray[np.float32]]: ...

class ExportedReference:
    def __init__(self, path: str | os.PathLike[str], hash: str, classes: int) -> None: ...
    @property
    def dimensions(self) -> int: ...
    def verdict(self, features: NDArray[np.float32], probabilities: NDArray[np.float32]) -> str: ...

class Planner:
    def __init__(
        self,
        classes: int,
        labelled: list[int],
        unlabelled: list[int],
        steps: int,
        seed: int,
        settings: list[tuple[str, str]],
    ) -> None: ...
    @property
    def loss_weights(self) -> dict[str, float]: ...
    def plan(
        self,
        step: int,
        labelled_ids: NDArray[np.uint64],
        labels: NDArray[np.int64],
        labelled_logits: NDArray[np.float32],
        labelled_features: NDArray[np.float32],
        unlabelled_ids: NDArray[np.uint64],
        unlabelled_logits: NDArray[np.float32],
        unlabelled_features: NDArray[np.float32],
    ) -> dict[str, NDArray[Any]]: ...
    def commit(self) -> None: ...
    def undo(self) -> None: ...
    def state(self) -> dict[str, bytes]: ...
    def load(self, method: bytes, labelled: bytes, unlabelled: bytes) -> None: ...

def read_onnx(path: os.PathLike[str]) -> bytes: ...

class ImageView:
    def __init__(self, size: int, resize: int, filter: str, shrink: int) -> None: ...
    def of_files(self, paths: list[str]) -> NDArray[np.uint8]: ...
    def of_bytes(self, images: list[bytes], first: int) -> NDArray[np.uint8]: ...
    def of_pixels(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]: ...

def page_of_predictions(
    name: str, logits: NDArray[np.float32], labels: NDArray[np.int64], classes: list[str]
) -> str: ...
def report_of_run(folder: os.PathLike[str]) -> tuple[str, str]: ...

class Calibrator:
    def __init__(self, json: bytes) -> None: ...
    def to_json(self) -> str: ...
    def probabilities(self, logits: NDArray[np.float32]) -> NDArray[np.float32]: ...

def fit_calibrator(
    kind: str, logits: NDArray[np.float32], labels: NDArray[np.int64], penalised: bool
) -> Calibrator: ...
def measure(
    name: str,
    rows: NDArray[Any],
    are_logits: bool,
    labels: NDArray[np.int64],
    bins: int,
    by_mass: bool,
    right: bool,
    level: float | None,
    seed: int,
) -> tuple[float, tuple[float, float]]: ...
def reliability_bins(
    rows: NDArray[Any], are_logits: bool, labels: NDArray[np.int64], bins: int, by_mass: bool, right: bool
) -> list[tuple[int, float, float]]: ...
