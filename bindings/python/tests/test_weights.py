"""Weights of samples and classes: they move the head, and nothing that is about the labels as they are."""

import csv
import subprocess

import numpy as np
import pytest
from calmix import CalmixClassifier


def uneven(seed=0):
    """Two overlapping clouds, nine labels of the first class for each of the second."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(600) < 0.1).astype(int)
    X = rng.normal(size=(600, 8)) + 0.8 * truth[:, None]
    return X.astype(np.float32), truth


def kept(classifier):
    return next(candidate for candidate in classifier.candidates_ if candidate.kept)


def test_weights_of_one_and_of_zero_are_plain_rows():
    X, y = uneven()
    plain = CalmixClassifier().fit(X[:300], y[:300]).predict_proba(X)
    ones = CalmixClassifier().fit(X[:300], y[:300], sample_weight=np.ones(300)).predict_proba(X)
    assert np.abs(plain - ones).max() < 1e-3
    weights = np.r_[np.ones(300), np.zeros(300)]
    zeros = CalmixClassifier().fit(X, y, sample_weight=weights)
    assert (zeros.predict_proba(X) == ones).all()
    assert zeros.out_of_fold_.rows.max() < 300
    assert (zeros.out_of_fold_.y == y[zeros.out_of_fold_.rows]).all()


def test_balanced_weights_are_those_of_scikit_learn():
    from sklearn.utils.class_weight import compute_sample_weight

    X, y = uneven()
    balanced = CalmixClassifier(class_weight="balanced").fit(X, y)
    given = CalmixClassifier().fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    by_class = CalmixClassifier(class_weight=dict(zip([0, 1], 600 / (2 * np.bincount(y))))).fit(X, y)
    assert np.abs(balanced.predict_proba(X) - given.predict_proba(X)).max() < 1e-4
    assert (by_class.predict_proba(X) == given.predict_proba(X)).all()


def test_weights_move_the_head_and_not_its_labels():
    X, y = uneven()
    plain = CalmixClassifier().fit(X, y)
    balanced = CalmixClassifier(class_weight="balanced").fit(X, y)

    def answers(classifier):
        return (classifier.decision_function(X) > 0).mean()

    assert answers(balanced) > answers(plain) + 0.05
    assert (balanced.out_of_fold_.rows == plain.out_of_fold_.rows).all()
    # The NLL that heads are compared by is that of the labels as they are.
    assert kept(plain).nll <= kept(balanced).nll + 0.02


def test_command_reads_the_same_weights(digits, command, tmp_path):
    X, y, _ = digits
    weights = np.where(np.arange(1200) % 3 == 0, 2.5, 0.5)
    np.save(tmp_path / "train.npy", X[:1200])
    np.save(tmp_path / "test.npy", X[1200:])
    with open(tmp_path / "labels.csv", "w", newline="") as file:
        csv.writer(file).writerows([["label", "weight"], *zip(y[:1200], weights)])
    balanced = "labels.class_weight=balanced"
    train = ["train", "--features", "train.npy", "--labels", "labels.csv", "--run-dir", "run", "--set", balanced]
    for arguments in [train, ["predict", "run", "test.npy", "--probabilities", "--out", "out.csv"]]:
        done = subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert arguments is not train or "100 labels have weights" in done.stderr + done.stdout
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = np.array([[row[f"p({name})"] for name in range(10)] for row in rows], dtype=np.float32)
    classifier = CalmixClassifier(class_weight="balanced").fit(X[:1200], y[:1200], sample_weight=weights)
    assert (classifier.predict_proba(X[1200:]) == expected).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.r_[-1.0, np.ones(599)], "row 0: the weight is -1"),
        (np.r_[np.ones(599), np.nan], "row 599: the weight is NaN"),
        (np.ones(10), "sample_weight has the shape"),
        (np.ones((600, 2)), "sample_weight has the shape"),
        (np.array(["a"] * 600), "weights are numbers"),
        (np.zeros(600), "every label of the class 0 has the weight zero"),
    ],
)
def test_bad_weights_are_named(weights, message):
    X, y = uneven()
    with pytest.raises(ValueError, match=message):
        CalmixClassifier().fit(X, y, sample_weight=weights)


def test_bad_class_weights_are_named():
    X, y = uneven()
    for wrong, message in [("even", "'balanced'"), ({2: 1.0}, "2, which is not a class"), ({0: -1.0}, "the weight is -1")]:
        with pytest.raises(ValueError, match=message):
            CalmixClassifier(class_weight=wrong).fit(X, y)
    views = np.stack([X, X + 0.1, X - 0.1], axis=1)
    with pytest.raises(ValueError, match="one vector per sample"):
        CalmixClassifier(class_weight={0: 2.0}).fit(views, y)
