"""HTML reports of predictions, and the data of run folders."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from calmix import _calmix
from calmix.rows import encoded_labels, logits_of

# Characters of the longest name of a report, which every plot repeats.
_MAX_NAME_LENGTH = 1000


def report(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    labels: Sequence[Any] | None = None,
    path: str | os.PathLike[str] = "report.html",
    name: str = "predictions",
) -> Path:
    """Writes one HTML page about predictions, and returns its path.

    It has the metrics with confidence intervals, the reliability diagram, the risk-coverage curve, the confusion matrix,
    errors by class, and the confidence threshold for 95% precision. The model must not have been trained on these labels.

    Parameters
    ----------
    y_true : array of shape (n,)
        The true classes.
    y_prob : array of shape (n, classes)
        Probabilities; or pass `logits` instead.
    labels : sequence or None
        The classes in the order of the columns; by default 0, 1, 2, and so on.
    name : str
        The name of the model in the heading, of at most 1,000 characters.
    """
    if len(name) > _MAX_NAME_LENGTH:
        raise ValueError(f"name has {len(name)} characters, but {_MAX_NAME_LENGTH} are the most")
    rows = logits_of(y_prob, logits)
    codes, names = encoded_labels(y_true, rows, labels)
    page = _calmix.page_of_predictions(name, rows, codes, names)
    target = Path(path)
    target.write_text(page, encoding="utf-8")
    return target


def read_run(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns what `calmix report` says about a run folder: its summary, metrics and curves, as in `report.json`."""
    data, _ = _calmix.report_of_run(Path(folder))
    return json.loads(data)["runs"][0]
