"""`calmix.Model`: an exported model answers as the command does."""

import json
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

import calmix

onnxruntime = pytest.importorskip("onnxruntime")


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
def of_vectors(calmix_in, run_of_digits, digits):
    """An exported model of vectors, and what the command predicts."""
    calmix_in(run_of_digits, "export", "run", "--to", "model", "--precision", "0.8")
    predict = ["predict", "run", "new.npy", "--probabilities", "--precision", "0.8", "--format", "jsonl"]
    return run_of_digits, rows_of(calmix_in(run_of_digits, *predict)), digits[0][1200:]


@pytest.fixture(scope="module")
def of_images(calmix_in, run_of_images):
    """An exported model of images, what the command predicts, and the paths."""
    calmix_in(run_of_images, "export", "run", "--to", "model", "--precision", "0.8")
    predict = ["predict", "run", "new", "--probabilities", "--precision", "0.8", "--format", "jsonl"]
    rows = rows_of(calmix_in(run_of_images, *predict))
    return run_of_images, rows, [run_of_images / row["path"] for row in rows]


def test_vectors_have_the_answers_of_the_command(of_vectors):
    folder, rows, vectors = of_vectors
    model = calmix.Model(folder / "model", threads=1)
    assert (model.coverage, model.precision, len(model.classes)) == (0.9, 0.8, 10)
    assert_same(model.predict(vectors), model, rows, 1e-5)
    assert_same(model.predict(vectors.astype(np.float64), batch=7), model, rows, 1e-5)


def test_images_as_files_and_as_bytes_have_the_answers_of_the_command(of_images):
    folder, rows, paths = of_images
    model = calmix.Model(folder / "model", threads=1)
    contents = [path.read_bytes() for path in paths]
    assert_same(model.predict(paths), model, rows, 1e-5)
    assert_same(model.predict(contents, batch=3), model, rows, 1e-5)
    assert_same(model.predict(pd.Series(contents, index=range(7, -1, -1))), model, rows, 1e-5)
    with pytest.raises(ValueError, match="image 4: "):
        model.predict([*contents[:4], contents[4][:60], *contents[5:]], batch=2)
    with pytest.raises(ValueError, match="image 1: .*paths, bytes and arrays are not mixed"):
        model.predict([np.zeros((8, 8, 3), np.uint8), contents[0]])
    with pytest.raises(ValueError, match="row 1 has no image"):
        model.predict(pd.Series([contents[0], None]))
    with pytest.raises(ValueError, match="several"):
        model.predict(pd.DataFrame({"a": contents, "b": contents}))


def test_frames_have_the_columns_of_the_command(of_vectors):
    folder, rows, vectors = of_vectors
    model = calmix.Model(folder / "model", threads=1)
    index = [f"sample {row}" for row in range(len(rows))][::-1]
    frame = model.predict_frame(pd.DataFrame(vectors, index=index).astype("Float32"))
    assert list(frame.index) == index
    assert list(frame.columns) == ["label", "confidence", "set", "abstain", *(f"p({name})" for name in model.classes)]
    for column in ["label", "set", "abstain"]:
        assert frame[column].tolist() == [row[column] for row in rows], column
    wanted = np.array([row["probabilities"] for row in rows])
    assert np.abs(frame.to_numpy()[:, 4:].astype(float) - wanted).max() <= 1e-5
    assert list(model.predict_frame(vectors).index) == list(range(len(rows)))
    with pytest.raises(ValueError, match="vectors: row 3 contains NaN"):
        holes = pd.DataFrame(vectors).astype("Float32")
        holes.iloc[3, 2] = pd.NA
        model.predict(holes)


def test_frames_have_the_verdict(of_vectors):
    folder, _, vectors = of_vectors
    model = calmix.Model(folder / "model", threads=1)
    verdict = asdict(model.predict(vectors).verdict)
    assert verdict["verdict"]
    assert model.predict_frame(pd.DataFrame(vectors)).attrs["verdict"] == verdict
    pa = pytest.importorskip("pyarrow")
    table = model.predict_frame(pa.table({str(number): column for number, column in enumerate(vectors.T)}))
    assert json.loads(table.schema.metadata[b"verdict"]) == verdict


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
