"""The command `calmix review` for notebooks: which samples to label or to check."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def review(
    data: str | os.PathLike[str] | ArrayLike,
    *,
    labels: str | os.PathLike[str] | None = None,
    count: int | None = None,
    random: float = 0.3,
    choose: str | None = None,
    live: bool = False,
    classes: Sequence[str] = (),
    seed: int = 0,
    out: str | os.PathLike[str] = ".",
    force: bool = False,
) -> list[dict[str, Any]]:
    """Chooses samples to label or to check, writes `review.csv` and `review.html` into `out`, and returns the rows of the former.

    `pandas.DataFrame(calmix.review(...))` is a table of them. `calmix label` reads the file once its column `label` is filled in.

    Parameters
    ----------
    data : path or array of shape (n, d)
        A run, a folder of images or a file of vectors; or vectors, which are stored in `out` as `vectors.npy`.
    labels : path or None
        The list of labels of vectors, a CSV with ids.
    count : int or None
        Rows to ask for; `None` for 50, or 500 with `live`.
    random : float
        The share of them that is drawn at random. Guarantees rest on these alone.
    choose : "margin" or None
        Whether to ask also for the samples that the model of a run is least sure of.
    live : bool
        Whether the page learns: every ten answers it fits the head again, and predictions and order follow.
    classes : sequence of str
        Names of classes that have no label yet, for the page.
    seed : int
        The seed of the random order, which the next review continues.
    force : bool
        Whether to replace a `review.csv`, which may have answers.

    Raises
    ------
    ValueError
        If the command refuses the samples; the message says what to do.
    """
    folder = Path(out)
    path = data if isinstance(data, (str, os.PathLike)) else _stored(np.asarray(data), folder)
    arguments = [os.fspath(path), "--random", random, "--seed", seed, "--out", folder, "--quiet"]
    options = [("--count", count), ("--labels", labels), ("--choose", choose), ("--classes", ",".join(classes))]
    for option, value in options:
        if value is not None and value != "":
            arguments += [option, value]
    arguments += [option for option, is_set in [("--live", live), ("--force", force)] if is_set]
    ended = subprocess.run([_program(), "review", *map(str, arguments)], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise ValueError(ended.stderr.strip())
    with open(folder / "review.csv", encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row["confidence"] = float(row["confidence"]) if row["confidence"] else None
    return rows


def _stored(vectors: np.ndarray, folder: Path) -> Path:
    if vectors.ndim != 2:
        raise ValueError(f"vectors have the shape {vectors.shape}, expected (samples, numbers)")
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "vectors.npy", vectors.astype(np.float32))
    return folder / "vectors.npy"


def _program() -> str:
    """The program that was installed with this package, or else the first one on PATH."""
    own = shutil.which("calmix", path=sysconfig.get_path("scripts"))
    program = own or shutil.which("calmix")
    if program is None:
        raise FileNotFoundError("the program calmix is neither beside this Python nor on PATH: pip install calmix")
    return program
