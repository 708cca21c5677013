"""Exported models on onnxruntime."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calmix import _calmix
from calmix.arrays import as_vectors
from calmix.feature_sets import feature_sets, joined
from calmix.frames import answer_frame, as_rows, values_of, with_verdict
from calmix.model_notes import ModelNotes

_Path = str | os.PathLike[str]
# The output that inputs are compared by.
_FEATURES = "reference_features"
# What a model in use consists of; the Hub's folder also has weights for PyTorch.
_FILES = ["model.onnx", "reference.safetensors"]


@dataclass(frozen=True)
class Verdict:
    """What the guarantees are worth for some samples, compared with those of training."""

    verdict: str
    """`applies`; `mix-differs`: the mix of classes is not that of the held-out labels; `void`: the samples are unlike those of
    training; `not-checked`."""
    why: str = ""
    """Why nothing was compared; empty if it was."""
    rows: int | None = None
    """The number of samples that were compared."""
    strangeness: float | None = None
    """The p-value of the test for samples unlike those of training."""
    mix: float | None = None
    """The p-value of the test for another mix of classes."""
    unusual: float | None = None
    """The estimated share of samples unlike those of training."""
    strangest: list[int] = field(default_factory=list)
    """The rows of the five strangest samples, the strangest first."""


@dataclass(frozen=True)
class Answers:
    """What a model answers, one row per input."""

    label: NDArray[Any]
    """The names of the most probable classes."""
    confidence: NDArray[np.float32]
    """Their calibrated probabilities."""
    probabilities: NDArray[np.float32]
    """The calibrated probabilities of all classes, in the order of `Model.classes`."""
    set: NDArray[np.bool_] | None
    """Which classes are in the prediction set; None without held-out labels."""
    abstain: NDArray[np.bool_] | None
    """Whether the model abstains; None without held-out labels."""
    verdict: Verdict
    """What `set` and `abstain` are worth for these inputs as a whole."""


class Model:
    """A model that `calmix export` wrote, on onnxruntime and without PyTorch.

    Images are decoded and resized by the code that trained the model, so that the answers are those of `calmix predict`.

    A model that reads other files, or that has loops or functions, is refused. Beyond that a file decides how much memory and time
    it takes, as programs do: open models of others with the limits that you would give to a program of theirs.

    Parameters
    ----------
    folder : path
        The folder that `calmix export RUN --to FOLDER` wrote.
    threads : int or None
        The threads of onnxruntime; by default one per core.

    Examples
    --------
    >>> model = Model("pets")                                      # doctest: +SKIP
    >>> answers = model.predict(["photo.jpg"])                     # doctest: +SKIP
    >>> answers.label[0], answers.confidence[0]                    # doctest: +SKIP
    """

    classes: list[str]
    coverage: float | None
    precision: float | None

    def __init__(self, folder: _Path, *, threads: int | None = None) -> None:
        # Versions from 1.31 on would otherwise make an identifier of the device and a database when they are loaded.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError('calmix.Model runs on onnxruntime: pip install "calmix[images]"') from error
        file = Path(folder) / "model.onnx"
        if not file.is_file():
            raise FileNotFoundError(f"{file}: there is no exported model; calmix export RUN --to {folder} writes one")
        options = onnxruntime.SessionOptions()
        # Otherwise the bytes decide in which of two formats they are read, and only this one was checked.
        options.add_session_config_entry("session.load_model_format", "ONNX")
        if threads is not None:
            options.intra_op_num_threads = threads
        content = _calmix.read_onnx(file)
        try:
            # A fallback would read the same bytes once more, with the same provider.
            self._session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
            metadata = self._session.get_modelmeta().custom_metadata_map
            inputs = self._session.get_inputs()
            outputs = self._session.get_outputs()
        except Exception as error:
            raise ValueError(f"{file}: onnxruntime cannot read this model: {error}") from error
        self._file = file
        notes = ModelNotes(file, metadata)
        self.classes = notes.classes()
        self.coverage = notes.share("coverage")
        self.precision = notes.share("precision")
        self._input, self._width = notes.entrance(inputs)
        self._sets = notes.sets()
        self._outputs = notes.outputs(outputs, len(self.classes))
        self._reference, self._without_reference = self._read_reference(notes)
        self._view = None
        if self._input == "images":
            try:
                self._view = _calmix.ImageView(self._width, *notes.resizing())
            except (OverflowError, ValueError) as error:
                raise ValueError(f"{file}: its notes on images are wrong: {error}") from error

    @classmethod
    def from_pretrained(
        cls,
        repository: str,
        *,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: _Path | None = None,
        local_files_only: bool = False,
        threads: int | None = None,
    ) -> Model:
        """Loads a model that was uploaded to the Hugging Face Hub, from a folder of `calmix export RUN --to FOLDER --hub`.

        The package `huggingface_hub` downloads it into its cache, with its own variables, such as `HF_TOKEN` and `HF_ENDPOINT`.

        Parameters
        ----------
        repository : str
            The repository, `"owner/name"`.
        revision : str or None
            A branch, a tag or a commit. The commit of a model that you have tested is the safest.
        token : str, bool or None
            A token for private repositories; by default the one that `hf auth login` stored.
        local_files_only : bool
            Whether to use the cache alone, without the network.
        threads : int or None
            As for `Model`.
        """
        try:
            from huggingface_hub import snapshot_download
        except ImportError as error:
            raise ImportError("from_pretrained downloads with huggingface_hub: pip install huggingface_hub") from error
        folder = snapshot_download(
            repository,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            allow_patterns=_FILES,
        )
        return cls(folder, threads=threads)

    def predict_frame(self, inputs: Any, *, batch: int = 64) -> Any:
        """Returns the answers as a data frame with the columns of `calmix predict --probabilities`.

        These are `label`, `confidence`, `set` (a list, the most probable class first), `abstain`, and `p(CLASS)` for each class.
        The frame is one of Polars or PyArrow if `inputs` is, otherwise of pandas, with the index of `inputs` if it has one.

        The verdict on the inputs as a whole, with the fields of `Verdict`, is in `frame.attrs["verdict"]` of pandas, and as JSON in
        `table.schema.metadata[b"verdict"]` of PyArrow. Polars has no place for it: see `predict`.

        Parameters
        ----------
        inputs : path, paths, arrays or frame
            As for `predict`.
        batch : int
            Images in memory at a time.
        """
        answers = self.predict(inputs, batch=batch)
        classes = np.array(self.classes, dtype=object)
        frame = answer_frame(
            inputs, classes, answers.label, answers.confidence, answers.probabilities, answers.set, answers.abstain
        )
        return with_verdict(frame, asdict(answers.verdict))

    def predict(self, inputs: Any, *, batch: int = 64) -> Answers:
        """Returns the answers for images or vectors.

        Parameters
        ----------
        inputs : path, paths, arrays or frame
            For a model of images: files, their contents as bytes, or arrays of shape (height, width, 3), uint8, red, green and
            blue. For a model of vectors: an array of shape (n, width). Both may be a column or a frame of pandas, Polars or PyArrow:
            one column of paths, of bytes or of vectors, or a column for each number of a vector. For a model of several sets of
            features, `[X1, X2]`, or one table with all features.
        batch : int
            Images in memory at a time.
        """
        if batch < 1:
            raise ValueError(f"batch is {batch}, but must be 1 or more")
        if self._view is None:
            rows = self._vectors(inputs)
            found = [self._run(rows[start : start + batch]) for start in range(0, len(rows), batch)]
        else:
            images = [inputs] if isinstance(inputs, (str, os.PathLike, bytes)) else values_of(inputs)
            starts = range(0, len(images), batch)
            found = [self._run(self._pixels(images[start : start + batch], start)) for start in starts]
        if not found:
            raise ValueError("there is nothing to predict")
        outputs = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
        return Answers(
            label=np.array(self.classes)[outputs["label"]],
            confidence=outputs["confidence"],
            probabilities=outputs["probabilities"],
            set=outputs.get("set"),
            abstain=outputs.get("abstain"),
            verdict=self._verdict(outputs),
        )

    def _read_reference(self, notes: ModelNotes) -> tuple[_calmix.ExportedReference | None, str]:
        """What inputs are compared with, or why there is nothing."""
        file = self._file.with_name("reference.safetensors")
        if not (known := notes.reference()):
            return None, "the run kept no reference"
        if not file.is_file():
            return None, "reference.safetensors is not beside model.onnx; copy it from the exported folder"
        reference = _calmix.ExportedReference(file, known, len(self.classes))
        width = self._outputs.get(_FEATURES, (0,))[0]
        if reference.dimensions != width:
            raise ValueError(f"{file}: it has {reference.dimensions} features, but model.onnx computes {width}")
        return reference, ""

    def _verdict(self, outputs: dict[str, NDArray[Any]]) -> Verdict:
        if self._reference is None:
            return Verdict("not-checked", self._without_reference)
        features = outputs.get(_FEATURES, np.zeros((len(outputs["label"]), 1), np.float32))
        found = json.loads(self._reference.verdict(features, outputs["probabilities"]))
        return Verdict(**{**found, "strangest": [int(row) for row in found.get("strangest", [])]})

    def _vectors(self, inputs: Any) -> NDArray[np.float32]:
        sets = feature_sets(inputs)
        rows = as_rows(inputs, "vectors") if sets is None else joined([as_rows(table, "vectors") for table in sets])
        if sets is not None and len(sets) > 1 and [table.shape[-1] for table in sets] != self._sets:
            found = [table.shape[-1] for table in sets]
            raise ValueError(f"the model reads sets of {self._sets or [self._width]} features, but these have {found}")
        if rows.ndim != 2 or rows.shape[1] != self._width:
            raise ValueError(f"the model reads vectors of shape (n, {self._width}), but these are {rows.shape}")
        return as_vectors(rows, "vectors")

    def _run(self, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
        try:
            answers = self._session.run(list(self._outputs), {self._input: rows})
        except Exception as error:
            raise ValueError(f"{self._file}: onnxruntime cannot run this model: {error}") from error
        found = dict(zip(self._outputs, answers))
        for name, shape in self._outputs.items():
            if found[name].shape != (len(rows), *shape):
                raise ValueError(f"{self._file}: its output `{name}` has the shape {found[name].shape} for {len(rows)} rows")
        label = found["label"]
        if (label < 0).any() or (label >= len(self.classes)).any():
            raise ValueError(f"{self._file}: it answers with a label that is not one of its {len(self.classes)} classes")
        return found

    def _pixels(self, images: Sequence[Any], first: int) -> NDArray[np.uint8]:
        """The pixels of images, of which the first has this number in messages."""
        assert self._view is not None
        if all(isinstance(image, (str, os.PathLike)) for image in images):
            return self._view.of_files([os.fspath(image) for image in images])
        if all(isinstance(image, bytes) for image in images):
            return self._view.of_bytes(list(images), first)
        views = []
        for number, image in enumerate(images, first):
            pixels = np.ascontiguousarray(image)
            if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
                raise ValueError(
                    f"image {number}: an array of shape (height, width, 3), uint8, was expected, but this is {pixels.shape}, "
                    f"{pixels.dtype}; paths, bytes and arrays are not mixed"
                )
            views.append(self._view.of_pixels(pixels))
        return np.concatenate(views)
