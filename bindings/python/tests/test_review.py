"""`calmix.review` runs the program of the package."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calmix


@pytest.fixture(autouse=True)
def program(monkeypatch):
    """The program on PATH, as an installed package has it."""
    folder = Path(os.environ["CALMIX_PROGRAM"]).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def vectors(rows=200):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 8))
    return centres[rng.integers(4, size=rows)] + 0.1 * rng.normal(size=(rows, 8))


def test_array_becomes_rows_and_files(tmp_path):
    rows = calmix.review(vectors(), count=10, out=tmp_path, classes=["a", "b"])
    table = pd.DataFrame(rows)
    assert list(table) == ["file", "label", "given", "predicted", "confidence", "why", "drawn"]
    assert table["why"].value_counts().to_dict() == {"first": 7, "random": 3}
    assert set(table["file"].astype(int)) <= set(range(200)) and table["file"].is_unique
    assert table["confidence"].isna().all()
    assert "vectors.npy" in (tmp_path / "review.html").read_text(encoding="utf-8")


def test_refusals_are_errors_with_the_words_of_the_command(tmp_path):
    calmix.review(vectors(), count=5, out=tmp_path)
    with pytest.raises(ValueError, match="exists and may have answers"):
        calmix.review(vectors(), count=5, out=tmp_path)
    assert len(calmix.review(vectors(), count=4, out=tmp_path, force=True)) == 4
    with pytest.raises(ValueError, match=r"shape \(8,\), expected \(samples, numbers\)"):
        calmix.review(np.zeros(8), out=tmp_path, force=True)
    with pytest.raises(ValueError, match="does not exist"):
        calmix.review(tmp_path / "nowhere", out=tmp_path, force=True)
