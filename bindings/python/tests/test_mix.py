"""Another mix of classes, and the verdict of an exported model, on Gaussian classes."""

import pickle
import subprocess

import numpy as np
import pytest

from calmix import CalmixClassifier, Model

MEANS = np.random.default_rng(1).normal(size=(4, 12)) * 0.7


def drawn(n, shares, seed, by=0.0):
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=n, p=shares)
    return (MEANS[y] + rng.normal(size=(n, 12)) + by).astype(np.float32), y


EQUAL = [0.25, 0.25, 0.25, 0.25]
OTHER = [0.7, 0.2, 0.07, 0.03]


@pytest.fixture(scope="module")
def classifier():
    X, y = drawn(3000, EQUAL, 0)
    y[200:] = -1
    return CalmixClassifier().fit(X, y)


def nll(probabilities, y):
    return -np.log(probabilities[np.arange(len(y)), y]).mean()


def test_another_mix_is_estimated_and_adapted_to(classifier):
    X, y = drawn(1000, OTHER, 5)
    estimate = classifier.estimate_mix(X)
    assert estimate.differs and estimate.explained
    assert np.abs(estimate.shares - OTHER).sum() / 2 < 0.08
    truth = np.bincount(y, minlength=4) / len(y)
    assert ((estimate.low <= truth) & (truth <= estimate.high)).sum() >= 3
    plain, estimated = nll(classifier.predict_proba(X), y), nll(classifier.predict_proba(X, mix="estimate"), y)
    known = nll(classifier.predict_proba(X, mix=dict(zip(range(4), OTHER))), y)
    assert estimated < plain - 0.02 and known < plain - 0.02
    assert np.array_equal(classifier.predict_proba(X, mix=OTHER), classifier.predict_proba(X, mix=dict(enumerate(OTHER))))
    sets = classifier.predict_set(X, mix="estimate")
    covered = sets[np.arange(len(y)), y].mean()
    assert 0.85 < covered < 0.97 and sets.sum() < classifier.predict_set(X, rule="lac-by-class").sum()
    answered = classifier.predict_or_abstain(X, 0.8, mix=OTHER)
    assert (answered.compressed() == y[~answered.mask]).mean() > 0.75


def test_an_unchanged_mix_changes_nothing(classifier):
    X, _ = drawn(500, EQUAL, 6)
    assert not classifier.estimate_mix(X).differs
    assert np.array_equal(classifier.predict_proba(X, mix="estimate"), classifier.predict_proba(X))
    again = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(again.predict_proba(X, mix=OTHER), classifier.predict_proba(X, mix=OTHER))


def test_strange_samples_are_not_adapted_to(classifier):
    X, _ = drawn(500, OTHER, 7, by=1.5)
    assert classifier.estimate_mix(X).explained is False
    with pytest.warns(UserWarning, match="no mix of classes explains"):
        assert np.array_equal(classifier.predict_proba(X, mix="estimate"), classifier.predict_proba(X))


def test_wrong_mixes_are_refused(classifier):
    X, _ = drawn(50, EQUAL, 8)
    for mix, reason in [
        ("guess", "must be 'estimate'"),
        ([0.5, 0.5], "2 shares, but there are 4"),
        ([0.5, 0.5, 0.5, 0.5], "add up to 2"),
        ([1.5, -0.5, 0, 0], "not between 0 and 1"),
        ({0: 1.0}, "no share of 1"),
        ({**dict(enumerate(EQUAL)), 9: 0.0}, "not a class"),
        ([[1.0]], "shape"),
    ]:
        with pytest.raises(ValueError, match=reason):
            classifier.predict_proba(X, mix=mix)
    with pytest.raises(ValueError, match="lac"):
        classifier.predict_set(X, rule="aps", mix=EQUAL)
    few = CalmixClassifier()
    with pytest.warns(UserWarning):
        few.fit(X[:8], np.arange(8) % 4)
    with pytest.raises(ValueError, match="too few"):
        few.predict_proba(X, mix=EQUAL)


def test_exported_model_has_the_verdict_of_the_command(command, tmp_path):
    pytest.importorskip("onnxruntime")
    X, y = drawn(3000, EQUAL, 0)
    np.save(tmp_path / "train.npy", X)
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"{row},c{y[row]}\n" for row in range(200)))

    def run(*arguments):
        ended = subprocess.run([str(command), *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    run("train", "--features", "train.npy", "--labels", "labels.csv", "--run-dir", "run")
    run("export", "run", "--to", "model")
    model = Model(tmp_path / "model")
    for by, shares, verdict in [(0.0, EQUAL, "applies"), (1.0, EQUAL, "void"), (0.0, OTHER, "mix-differs")]:
        new, _ = drawn(400, shares, 9, by)
        np.save(tmp_path / "new.npy", new)
        said = run("predict", "run", "new.npy", "--out", f"{verdict}.csv")
        found = model.predict(new).verdict
        assert found.verdict == verdict, said
        assert len(found.strangest) == 5 and found.rows == 400
    assert model.predict(new[:10]).verdict.why.startswith("10 rows are too few")
    damaged = (tmp_path / "model/reference.safetensors").read_bytes()[:-1]
    (tmp_path / "model/reference.safetensors").write_bytes(damaged)
    with pytest.raises(ValueError, match="not the file that model.onnx describes"):
        Model(tmp_path / "model")
    (tmp_path / "model/reference.safetensors").unlink()
    assert "copy it" in Model(tmp_path / "model").predict(new).verdict.why
