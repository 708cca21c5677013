"""Several sets of features: one model, the bits of the command, and what is refused."""

import csv
import io
import pickle
import subprocess

import calmix
import numpy as np
import pytest
from calmix import CalmixClassifier


@pytest.fixture(scope="module")
def halves(digits):
    """The digits as two sets of features in different units."""
    X, y, _ = digits
    return [X[:, :24], 1000 * X[:, 24:] + 7], y


def test_command_estimator_and_exported_model_agree(halves, command, tmp_path):
    sets, y = halves
    train, test = [table[:1200] for table in sets], [table[1200:] for table in sets]
    for number in range(2):
        np.save(tmp_path / f"train{number}.npy", train[number])
        np.save(tmp_path / f"test{number}.npy", test[number])
    np.save(tmp_path / "joined.npy", np.concatenate(test, axis=1))
    with open(tmp_path / "labels.csv", "w", newline="") as file:
        csv.writer(file).writerows([["label"], *([label] for label in y[:1200])])
    features = ["--features", "train0.npy", "--features", "train1.npy", "--labels", "labels.csv"]
    out = ["--probabilities", "--out"]
    for arguments in [
        ["train", *features, "--run-dir", "run", "--quiet"],
        ["predict", "run", "test0.npy", "test1.npy", *out, "sets.csv"],
        ["predict", "run", "joined.npy", *out, "joined.csv"],
        ["export", "run", "--to", "model"],
    ]:
        done = subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    text = (tmp_path / "sets.csv").read_text()
    assert text == (tmp_path / "joined.csv").read_text()
    classifier = CalmixClassifier().fit(train, y[:1200])
    assert classifier.feature_sets_ == [24, 40] and classifier.n_features_in_ == 64
    rows = list(csv.DictReader(io.StringIO(text)))
    expected = np.array([[row[f"p({name})"] for name in range(10)] for row in rows], dtype=np.float32)
    probabilities = classifier.predict_proba(test)
    assert (probabilities == expected).all()
    assert (classifier.predict_proba(np.concatenate(test, axis=1)) == expected).all()
    assert (pickle.loads(pickle.dumps(classifier)).predict_proba(test) == expected).all()
    model = calmix.Model(tmp_path / "model", threads=1)
    for inputs in [test, np.concatenate(test, axis=1)]:
        assert np.abs(model.predict(inputs).probabilities - expected).max() < 1e-4
    with pytest.raises(ValueError, match=r"sets of \[24, 40\]"):
        model.predict(test[::-1])


def test_units_of_a_set_do_not_matter(halves, digits):
    """Joined by hand, the set with the long vectors would be all there is."""
    sets, y = halves
    truth = digits[2]
    train = [table[:1200] for table in sets]
    accuracy = {
        name: np.mean(CalmixClassifier().fit(X, y[:1200]).predict(test) == truth[1200:])
        for name, X, test in [
            ("sets", train, [table[1200:] for table in sets]),
            ("joined", np.concatenate(train, axis=1), np.concatenate([table[1200:] for table in sets], axis=1)),
            ("second", train[1], sets[1][1200:]),
        ]
    }
    assert accuracy["sets"] > accuracy["joined"] + 0.02, accuracy
    assert abs(accuracy["joined"] - accuracy["second"]) < 0.02, accuracy


def test_one_set_in_a_list_is_the_set_itself(digits):
    X, y, _ = digits
    alone = CalmixClassifier().fit(X[:1200], y[:1200]).predict_proba(X[1200:])
    assert (CalmixClassifier().fit([X[:1200]], y[:1200]).predict_proba([X[1200:]]) == alone).all()


def test_sets_that_do_not_fit_are_named(halves):
    [first, second], y = halves
    with pytest.raises(ValueError, match=r"X\[1\] has 1100 rows, but X\[0\] has 1200"):
        CalmixClassifier().fit([first[:1200], second[:1100]], y[:1200])
    with pytest.raises(ValueError, match="number of views"):
        CalmixClassifier().fit([first[:1200], np.stack([second[:1200]] * 3, axis=1)], y[:1200])
    classifier = CalmixClassifier().fit([first[:1200], second[:1200]], y[:1200])
    with pytest.raises(ValueError, match=r"sets of \[40, 24\] features, but CalmixClassifier is expecting \[24, 40\]"):
        classifier.predict([second, first])
    with pytest.raises(ValueError, match="24 features, but CalmixClassifier is expecting 64"):
        classifier.predict(first)
