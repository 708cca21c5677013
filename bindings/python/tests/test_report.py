"""The page about predictions, and the data of a run."""

import json
import os
import shutil
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


def test_pages_that_would_be_useless_are_refused(tmp_path):
    p = np.full((4, 2), 0.5)
    y = np.array([0, 1, 0, 1])
    refused = {
        "no predictions": lambda path: calmix.report(y[:0], p[:0], path=path),
        "1000 are the most": lambda path: calmix.report(y, p, path=path, name="n" * 10**7),
        "labels: the class name": lambda path: calmix.report(["m"] * 4, p, path=path, labels=["n" * 2000, "m"]),
        "row 2 contains NaN or infinity": lambda path: calmix.report(y, logits=np.diag([1, 1, 1e300, 1])[:, 1:3], path=path),
    }
    for message, call in refused.items():
        with pytest.raises(ValueError, match=message):
            call(tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


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


@pytest.fixture(scope="module")
def run(command, tmp_path_factory):
    """A small finished run on vectors."""
    folder = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=90)
    np.save(folder / "x.npy", (np.eye(3)[truth] * 2 + rng.normal(size=(90, 3))).astype(np.float32))
    np.save(folder / "y.npy", truth)
    train = ["train", "--features", "x.npy", "--labels", "y.npy", "--run-dir", "run"]
    done = subprocess.run([command, *train], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "run"


FILES = ["summary.json", "result.json", "model.json", "events.jsonl", "predictions/*.safetensors"]


def hostile(path, kind):
    """Replaces a file by something else."""
    content = path.read_bytes()
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "hollow":
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    elif kind in ["/etc/passwd", "/dev/zero", "/nowhere"]:
        path.symlink_to(kind)
    else:
        made = {"half": content[: len(content) // 2], "nested": b"[" * (4 << 20), "noise": bytes(range(256)) * 16}
        path.write_bytes(made[kind])


@pytest.mark.parametrize("kind", ["pipe", "folder", "hollow", "/etc/passwd", "/dev/zero", "/nowhere", "half", "nested", "noise"])
@pytest.mark.parametrize("file", FILES)
def test_hostile_files_of_a_run_are_refused(run, tmp_path, file, kind):
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    (path,) = copied.glob(file)
    hostile(path, kind)
    if (file, kind) == ("events.jsonl", "half"):
        # A kill leaves such a file: what is whole of it is read.
        assert calmix.read_run(copied)["finished"]
        return
    with pytest.raises(ValueError, match=path.name.replace(".", r"\.")):
        calmix.read_run(copied)


@pytest.mark.parametrize("value", [None, -1, 2**64, 1e308, "x" * 100_000, [], {}, [[0] * 1000]])
@pytest.mark.parametrize("file", ["summary.json", "result.json", "model.json"])
def test_wrong_types_in_a_run_are_refused(run, tmp_path, file, value):
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    written = json.loads((copied / file).read_text())
    for key in written:
        (copied / file).write_text(json.dumps({**written, key: value}))
        try:
            calmix.read_run(copied)
        except ValueError as error:
            # Never a panic, and the file is named, briefly.
            assert "run" in str(error) and len(str(error)) < 3000, key
