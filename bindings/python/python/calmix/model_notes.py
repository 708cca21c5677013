"""What an exported model says about itself, checked: its notes, its input and its outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Name, type and number of dimensions of an input, and the type of each output.
_INPUTS = {"vectors": ("tensor(float)", 2), "images": ("tensor(uint8)", 4)}
_OUTPUTS = {
    "label": "tensor(int64)",
    "confidence": "tensor(float)",
    "probabilities": "tensor(float)",
    "set": "tensor(bool)",
    "abstain": "tensor(bool)",
    "reference_features": "tensor(float)",
}
_WITH_CLASSES = {"probabilities", "set"}
_OPTIONAL = {"set", "abstain", "reference_features"}
# An output whose width the file decides, and the largest width.
_OF_ANY_WIDTH = "reference_features"
_MAX_WIDTH = 200


class ModelNotes:
    """The notes of a model file."""

    def __init__(self, file: Path, notes: Mapping[str, str]) -> None:
        self._file = file
        self._notes = notes
        if "calmix_version" not in notes:
            raise ValueError(f"{file}: calmix did not write this model")

    def classes(self) -> list[str]:
        """The names of the classes."""
        classes = self._json("classes")
        if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes) or len(classes) < 2:
            raise self._wrong("its note `classes` is not a list of two names or more")
        if len(set(classes)) != len(classes):
            raise self._wrong("its note `classes` names a class twice")
        return classes

    def share(self, name: str) -> float | None:
        """A number between 0 and 1, if the model has one."""
        if name not in self._notes:
            return None
        share = self._json(name)
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise self._wrong(f"its note `{name}` is {str(share)[:40]!r}, not a number between 0 and 1")
        return float(share)

    def reference(self) -> str:
        """The hash of the file that inputs are compared with; empty without one."""
        if "reference_blake3" not in self._notes:
            return ""
        return self._notes["reference_blake3"]

    def sets(self) -> list[int]:
        """The widths of the sets of features that a vector consists of; empty for one set."""
        if "feature_sets" not in self._notes:
            return []
        sets = self._json("feature_sets")
        if not isinstance(sets, list) or not all(type(width) is int and width > 0 for width in sets):
            raise self._wrong("its note `feature_sets` is not a list of widths")
        return sets

    def resizing(self) -> tuple[int, str, int]:
        """To how many pixels an image is resized, by which filter, and to how many it is shrunk before; 0 if it is not."""
        resize = self._json("resize")
        shrink = self._json("shrink") or 0
        if type(resize) is not int or type(shrink) is not int or "filter" not in self._notes:
            raise self._wrong("its notes `resize`, `filter` and `shrink` are incomplete or not numbers")
        return resize, self._notes["filter"], shrink

    def entrance(self, inputs: Sequence[Any]) -> tuple[str, int]:
        """The name of the input, and its width: numbers of a vector, or pixels of a side."""
        [entrance] = inputs if len(inputs) == 1 else [None]
        kind, dimensions = _INPUTS.get(getattr(entrance, "name", ""), (None, 0))
        if entrance is None or entrance.type != kind or len(entrance.shape) != dimensions:
            raise self._wrong("its input is neither `vectors` nor `images`")
        width = entrance.shape[1]
        if type(width) is not int or width < 1 or (dimensions == 4 and entrance.shape[2:] != [width, 3]):
            raise self._wrong(f"its input `{entrance.name}` has the shape {entrance.shape}")
        return entrance.name, width

    def outputs(self, outputs: Sequence[Any], classes: int) -> dict[str, tuple[int, ...]]:
        """The outputs that answers are made of, with their shapes after the number of rows."""
        types = {output.name: output.type for output in outputs}
        shapes = {output.name: output.shape for output in outputs}
        found = {}
        for name, kind in _OUTPUTS.items():
            if name not in types and name in _OPTIONAL:
                continue
            if types.get(name) != kind:
                raise self._wrong(f"its output `{name}` is {types.get(name, 'missing')}, not {kind}")
            if name in _WITH_CLASSES and shapes[name][1:] != [classes]:
                raise self._wrong(f"its output `{name}` has the shape {shapes[name]}, but there are {classes} classes")
            found[name] = (classes,) if name in _WITH_CLASSES else ()
            if name == _OF_ANY_WIDTH:
                width = shapes[name][1:]
                if len(width) != 1 or type(width[0]) is not int or not 1 <= width[0] <= _MAX_WIDTH:
                    raise self._wrong(f"its output `{name}` has the shape {shapes[name]}")
                found[name] = (width[0],)
        return found

    def _json(self, name: str) -> Any:
        if name not in self._notes:
            raise self._wrong(f"it has no note `{name}`")
        try:
            return json.loads(self._notes[name])
        except (ValueError, RecursionError) as error:
            raise self._wrong(f"its note `{name}` is not JSON ({error})") from error

    def _wrong(self, problem: str) -> ValueError:
        return ValueError(f"{self._file}: {problem}; export the model again: calmix export RUN --to FOLDER")
