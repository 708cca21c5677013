"""`calmix.Model`: an exported model answers as the command does."""

import json
import subprocess
import sys

import numpy as np
import pytest

import calmix

onnxruntime = pytest.importorskip("onnxruntime")


def run(command, *arguments, cwd):
    """Ends with the output of a command that must succeed."""
    ended = subprocess.run([str(command), *map(str, arguments)], cwd=cwd, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def rows_of(text):
    return [json.loads(line) for line in text.splitlines()]


def assert_same(answers, model, rows, most):
    assert list(answers.label) == [row["label"] for row in rows]
    wanted = np.array([row["probabilities"] for row in rows])
    assert np.abs(answers.probabilities - wanted).max() <= most
    assert np.abs(answers.confidence - [row["confidence"] for row in rows]).max() <= most
    assert list(answers.abstain) == [row["abstain"] for row in rows]
    classes = np.array(model.classes)
    assert [sorted(classes[members]) for members in answers.set] == [sorted(row["set"]) for row in rows]


@pytest.fixture(scope="module")
def of_vectors(command, digits, tmp_path_factory):
    """An exported model of vectors, and what the command predicts."""
    folder = tmp_path_factory.mktemp("vectors")
    X, y, _ = digits
    np.save(folder / "vectors.npy", X[:1200])
    np.save(folder / "new.npy", X[1200:])
    labels = "".join(f"{row},{label}\n" for row, label in enumerate(y[:1200]) if label >= 0)
    (folder / "labels.csv").write_text("id,label\n" + labels)
    run(command, "train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run", cwd=folder)
    run(command, "export", "run", "--to", "model", "--precision", "0.8", cwd=folder)
    predict = ["predict", "run", "new.npy", "--probabilities", "--precision", "0.8", "--format", "jsonl"]
    return folder, rows_of(run(command, *predict, cwd=folder)), X[1200:]


def test_vectors_have_the_answers_of_the_command(of_vectors):
    folder, rows, vectors = of_vectors
    model = calmix.Model(folder / "model", threads=1)
    assert (model.coverage, model.precision, len(model.classes)) == (0.9, 0.8, 10)
    assert_same(model.predict(vectors), model, rows, 1e-5)
    assert_same(model.predict(vectors.astype(np.float64), batch=7), model, rows, 1e-5)


def test_wrong_inputs_are_refused(of_vectors, tmp_path):
    folder, _, vectors = of_vectors
    model = calmix.Model(folder / "model")
    with pytest.raises(ValueError, match=r"shape \(n, 64\), but these are \(3, 5\)"):
        model.predict(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="row 0 contains NaN"):
        model.predict(np.full((1, 64), np.nan))
    with pytest.raises(ValueError, match="row 2 is a vector longer than 1.7e"):
        model.predict(np.vstack([vectors[:2], np.full((1, 64), 3.4e38)]))
    with pytest.raises(ValueError, match="nothing to predict"):
        model.predict(vectors[:0])
    with pytest.raises(ValueError, match="batch is 0"):
        model.predict(vectors, batch=0)
    with pytest.raises(FileNotFoundError, match="calmix export RUN"):
        calmix.Model(tmp_path)


def test_without_onnxruntime_the_error_names_the_extra(of_vectors):
    folder, _, _ = of_vectors
    code = f"import sys; sys.modules['onnxruntime'] = None; import calmix; calmix.Model({str(folder / 'model')!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "calmix[images]"' in ended.stderr
