"""The page about predictions, and the data of a run."""

import subprocess

import calmix
import numpy as np
import pytest


def test_page_about_predictions(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=1500)
    y = np.array([rng.choice(3, p=row) for row in p])
    path = calmix.report(y, p, path=tmp_path / "page.html", name="my <model>")
    page = path.read_text()
    assert "my &lt;model&gt;" in page and "<svg" in page and "Is the confidence calibrated?" in page
    assert "from predictions and labels" in page and "calmix predict" not in page
    measured = calmix.calibration.error(y, p)
    assert f"{100 * measured:.1f}%" in page


def test_run_of_the_command_is_read(digits, command, tmp_path):
    X, y, _ = digits
    np.save(tmp_path / "x.npy", X[:600])
    np.save(tmp_path / "y.npy", y[:600])
    arguments = ["train", "--features", "x.npy", "--labels", "y.npy", "--run-dir", "run"]
    done = subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = calmix.read_run(tmp_path / "run")
    assert run["finished"] and run["summary"]["classes"] == 10
    assert 0 < run["evaluated"]["evaluation"]["metrics"]["error"] < 0.5
    with pytest.raises(ValueError, match="not a run"):
        calmix.read_run(tmp_path)
