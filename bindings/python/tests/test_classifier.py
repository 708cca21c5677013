"""The estimator: scikit-learn's own checks, the bits of the command, guarantees, and what it refuses."""

import csv
import io
import pickle
import subprocess
import warnings

import numpy as np
import pytest
from calmix import CalmixClassifier

EXPECTED_FAILURES = {
    "check_classifiers_classes": "its classes are −1 and 1, and −1 means unlabelled; scikit-learn exempts its own "
    "semi-supervised classifiers by name",
    "check_sample_weight_equivalence_on_dense_data": "labels are dealt into folds, where a weight of 2 is one label and a copied row two",
}


def test_scikit_learn_accepts_the_estimator():
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(
        CalmixClassifier(), expected_failed_checks=EXPECTED_FAILURES, on_fail=None, on_skip=None
    )
    failed = {result["check_name"]: repr(result["exception"]) for result in results if result["status"] == "failed"}
    assert not failed, failed
    expected = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert expected == set(EXPECTED_FAILURES)
    assert sum(result["status"] == "passed" for result in results) > 40


def test_pipelines_clones_and_cross_validation_work(digits):
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, _, truth = digits
    pipeline = make_pipeline(StandardScaler(), CalmixClassifier(random_state=3))
    assert clone(pipeline).get_params()["calmixclassifier__random_state"] == 3
    scores = cross_val_score(pipeline, X[:400], truth[:400], cv=3)
    assert scores.min() > 0.8, scores


def test_joblib_and_pickle_keep_the_bits(digits, tmp_path):
    import joblib

    X, y, _ = digits
    classifier = CalmixClassifier().fit(X[:1200], y[:1200])
    before = classifier.predict_proba(X[1200:])
    joblib.dump(classifier, tmp_path / "classifier.joblib")
    for other in [joblib.load(tmp_path / "classifier.joblib"), pickle.loads(pickle.dumps(classifier))]:
        assert (other.predict_proba(X[1200:]) == before).all()
        assert (other.predict_set(X[1200:]) == classifier.predict_set(X[1200:])).all()


def test_threads_change_no_bit(digits):
    X, y, _ = digits
    one = CalmixClassifier(n_jobs=1).fit(X[:1200], y[:1200])
    all_of_them = CalmixClassifier(n_jobs=-1).fit(X[:1200], y[:1200])
    assert (one.predict_proba(X) == all_of_them.predict_proba(X)).all()


@pytest.mark.parametrize("views", [1, 3])
def test_command_and_estimator_have_the_same_bits(digits, command, tmp_path, views):
    X, y, _ = digits
    train, test = X[:1200], X[1200:]
    noise = np.random.default_rng(1).normal(size=(1200, views - 1, X.shape[1])).astype(np.float32)
    stacked = np.concatenate([train[:, None], train[:, None] + noise], axis=1)
    settings = {"train.steps": 50} if views > 1 else {}
    np.save(tmp_path / "train.npy", stacked if views > 1 else train)
    np.save(tmp_path / "test.npy", test)
    with open(tmp_path / "labels.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["label"])
        rows.writerows([label] for label in y[:1200])
    sets = [f"--set={key}={value}" for key, value in settings.items()]
    train_arguments = ["train", "--features", "train.npy", "--labels", "labels.csv", "--run-dir", "run", *sets]
    for arguments in [train_arguments, ["predict", "run", "test.npy", "--probabilities", "--out", "predictions.csv"]]:
        done = subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    classifier = CalmixClassifier(settings=settings).fit(stacked if views > 1 else train, y[:1200])
    rows = list(csv.DictReader(io.StringIO((tmp_path / "predictions.csv").read_text())))
    assert len(rows) == len(test)
    probabilities = classifier.predict_proba(test)
    expected = np.array([[row[f"p({name})"] for name in range(10)] for row in rows], dtype=np.float32)
    assert (probabilities == expected).all()
    members = classifier.predict_set(test, coverage=0.9)
    sets = [set(map(int, row["set"].split("|"))) for row in rows]
    assert [set(np.flatnonzero(row)) for row in members] == sets
    answers = classifier.predict_or_abstain(test, precision=0.9)
    assert [row["abstain"] == "true" for row in rows] == list(np.ma.getmaskarray(answers))


@pytest.mark.parametrize("column", ["group", "drawn"])
def test_command_and_estimator_agree_with_groups_and_draws(digits, command, tmp_path, column):
    X, y, _ = digits
    train, test = X[:1200], X[1200:]
    # Seven writers, and a few digits of unknown ones; or labels of which a third was chosen.
    known = {"group": lambda row: f"writer {row % 7}", "drawn": lambda row: "random" if row % 3 else "chosen"}[column]
    values = [None if row % 10 == 3 else known(row) for row in range(1200)]
    np.save(tmp_path / "train.npy", train)
    np.save(tmp_path / "test.npy", test)
    with open(tmp_path / "labels.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["label", column])
        rows.writerows([label, value or ""] for label, value in zip(y[:1200], values, strict=True))
    train_arguments = ["train", "--features", "train.npy", "--labels", "labels.csv", "--run-dir", "run"]
    for arguments in [train_arguments, ["predict", "run", "test.npy", "--probabilities", "--out", "predictions.csv"]]:
        done = subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = CalmixClassifier().fit(train, y[:1200], **{"groups" if column == "group" else column: values})
        members = classifier.predict_set(test, coverage=0.9)
        assert column == "group" or all(values[row] != "chosen" for row in classifier.out_of_fold_.rows)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "predictions.csv").read_text())))
    expected = np.array([[row[f"p({name})"] for name in range(10)] for row in rows], dtype=np.float32)
    assert (classifier.predict_proba(test) == expected).all()
    sets = [set(map(int, row["set"].split("|"))) for row in rows]
    assert [set(np.flatnonzero(row)) for row in members] == sets


def test_groups_of_any_type_are_the_same(digits):
    pandas = pytest.importorskip("pandas")
    X, y, _ = digits
    numbers = np.arange(1200) // 3
    unknown = np.arange(1200) % 5 == 0
    names = [None if unknown[row] else f"patient {numbers[row]}" for row in range(1200)]
    before = CalmixClassifier().fit(X[:1200], y[:1200], groups=names)
    probabilities = before.predict_proba(X[1200:])
    others = [
        np.where(unknown, np.nan, numbers),
        np.ma.masked_array(numbers, mask=unknown),
        pandas.Series(names, dtype="string"),
        pandas.Series(names, dtype="category"),
        np.array(["" if name is None else name for name in names]),
    ]
    for groups in others:
        after = CalmixClassifier().fit(X[:1200], y[:1200], groups=groups)
        assert (after.predict_proba(X[1200:]) == probabilities).all()
    alone = CalmixClassifier(settings={"labels.link_copies": False}).fit(X[:1200], y[:1200])
    each = CalmixClassifier().fit(X[:1200], y[:1200], groups=np.arange(1200))
    assert (each.predict_proba(X[1200:]) == alone.predict_proba(X[1200:])).all()


def test_copies_in_one_group_are_in_one_fold():
    """With every label twice, sets of single labels cover too little; with groups they cover what they should."""
    coverage = {"alone": [], "grouped": []}
    for draw in range(20):
        rng = np.random.default_rng(draw)
        truth = rng.integers(4, size=1060)
        X = np.eye(4, 24)[truth] * 2.0 + rng.normal(size=(1060, 24))
        copies = np.concatenate([X[:60], X[:60] + 0.05 * rng.normal(size=(60, 24))])
        y = np.concatenate([truth[:60], truth[:60]])
        for name, groups in [("alone", None), ("grouped", np.tile(np.arange(60), 2))]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                settings = {"labels.link_copies": False}
                classifier = CalmixClassifier(random_state=draw, settings=settings).fit(copies, y, groups=groups)
                sets = classifier.predict_set(X[60:], coverage=0.9)
            coverage[name].append(sets[np.arange(1000), truth[60:]].mean())
    assert np.mean(coverage["alone"]) < 0.85, np.mean(coverage["alone"])
    assert np.mean(coverage["grouped"]) > 0.88, np.mean(coverage["grouped"])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(9), "X has 100 rows, but groups has 9"),
        (np.zeros((100, 2)), "groups should be a 1d array"),
        ([[1]] * 99 + [[2, 3]], "groups"),
    ],
)
def test_bad_groups_are_named(digits, groups, message):
    X, y, _ = digits
    with pytest.raises((TypeError, ValueError), match=message):
        CalmixClassifier().fit(X[:100], y[:100], groups=groups)


@pytest.mark.parametrize(
    ("drawn", "message"), [(["by hand"] * 100, "drawn, row 0: .by hand. does not say"), (["chosen"], "drawn has 1")]
)
def test_bad_draws_are_named(digits, drawn, message):
    X, y, _ = digits
    with pytest.raises(ValueError, match=message):
        CalmixClassifier().fit(X[:100], y[:100], drawn=drawn)


def test_unlabelled_samples_help_on_digits(digits):
    X, y, truth = digits
    classifier = CalmixClassifier().fit(X[:1200], y[:1200])
    alone = CalmixClassifier().fit(X[:1200][y[:1200] >= 0], y[:1200][y[:1200] >= 0])
    assert classifier.score(X[1200:], truth[1200:]) > alone.score(X[1200:], truth[1200:])
    assert sum(candidate.kept for candidate in classifier.candidates_) == 1
    assert {candidate.name for candidate in classifier.candidates_} >= {"logistic-regression", "em", "balanced-em"}
    assert classifier.helped_ == (classifier.nll_difference_.high < 0)
    evidence = classifier.out_of_fold_
    assert (evidence.y == y[:1200][evidence.rows]).all() and len(evidence.rows) == 100
    right = (classifier.classes_[evidence.probabilities.argmax(axis=1)] == evidence.y).mean()
    assert right > 0.7


def test_sets_cover_and_answers_are_right():
    """Over 40 draws: the mean coverage of nominal 90% sets, and how often an answered precision of 80% is missed."""
    coverage, missed, answered = [], 0, 0
    for draw in range(40):
        rng = np.random.default_rng(draw)
        truth = rng.integers(4, size=1400)
        X = np.eye(4)[truth] * 2.0 + rng.normal(size=(1400, 4))
        y = np.where(np.arange(1400) < 120, truth, -1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier = CalmixClassifier(random_state=draw).fit(X[:400], y[:400])
            sets = classifier.predict_set(X[400:], coverage=0.9)
            answers = classifier.predict_or_abstain(X[400:], precision=0.8)
        coverage.append(sets[np.arange(1000), truth[400:]].mean())
        kept = ~np.ma.getmaskarray(answers)
        if kept.any():
            answered += 1
            missed += (answers.data[kept] == truth[400:][kept]).mean() < 0.8
    assert 0.88 < np.mean(coverage), np.mean(coverage)
    # The guarantee may be missed in a tenth of the draws: of 40, nine are three deviations more.
    assert answered > 20 and missed <= 9, (answered, missed)


def test_labels_of_any_type_are_classes(digits):
    X, y, _ = digits
    names = np.array([f"digit {label}" for label in range(10)])
    words = np.where(y >= 0, names[y], "").astype(object)
    words[words == ""] = None
    numbers = CalmixClassifier().fit(X[:1200], y[:1200])
    for labels in [words[:1200], np.where(y >= 0, names[y], "")[:1200], np.where(y >= 0, y, np.nan)[:1200]]:
        classifier = CalmixClassifier().fit(X[:1200], labels)
        assert (classifier.predict_proba(X[1200:]) == numbers.predict_proba(X[1200:])).all()
        assert classifier.predict(X[:1])[0] in classifier.classes_


def test_too_few_labels_are_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.full(60, -1)
    y[:4] = [0, 1, 0, 1]
    with pytest.warns(UserWarning, match=r"fitted on at least 10 labels, .* y has 4 such labels"):
        classifier = CalmixClassifier().fit(X, y)
    with pytest.warns(UserWarning, match="prediction set"):
        assert classifier.predict_set(X, coverage=0.99).all()
    with pytest.warns(UserWarning, match="abstain"):
        assert np.ma.getmaskarray(classifier.predict_or_abstain(X)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, 0], y), "2D"),
        (lambda X, y: (np.where(np.arange(64) == 3, np.nan, X), y), "row 0 contains NaN"),
        (lambda X, y: (X.astype(np.float64) * 1e38, y), "too large"),
        (lambda X, y: (X, y[:-1]), "1199 labels"),
        (lambda X, y: (X, np.full(len(y), -1)), "at least two"),
        (lambda X, y: (X, y + 0.5), "continuous"),
        (lambda X, y: (X.astype(complex), y), "Complex"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
    ],
)
def test_bad_input_is_named(digits, change, message):
    X, y = change(digits[0][:1200], digits[1][:1200])
    with pytest.raises(ValueError, match=message):
        CalmixClassifier().fit(X, y)


@pytest.mark.parametrize("number", [3.4e38, -3.4e38, 1e38])
def test_too_long_vectors_have_their_row(digits, number):
    """A vector whose length is beyond float32 would have one answer, whatever its numbers are."""
    X, y = digits[0][:1200], digits[1][:1200]
    classifier = CalmixClassifier().fit(X, y)
    longer = X.copy()
    longer[1100] = number
    calls = [classifier.predict_proba, classifier.predict_set, lambda X: CalmixClassifier().fit(X, y)]
    for call in calls:
        with pytest.raises(ValueError, match="X: row 1100 is a vector longer than 1.7e"):
            call(longer)
    views = np.stack([X, longer], axis=1)
    with pytest.raises(ValueError, match="X: row 1100 is a vector longer than 1.7e"):
        CalmixClassifier().fit(views, y)
    assert np.isfinite(classifier.predict_proba(X * 1e35)).all()


def test_unknown_setting_has_a_suggestion(digits):
    X, y, _ = digits
    with pytest.raises(ValueError, match=r"did you mean `labels\.unlabelled_count`"):
        CalmixClassifier(settings={"labels.unlabeled_count": 10}).fit(X, y)
    with pytest.raises(ValueError, match="coverage"):
        CalmixClassifier().fit(X, y).predict_set(X, coverage=1.5)


def seconds_to_interrupt(call, after):
    """Seconds from Ctrl-C, so long after the start of the call, to its KeyboardInterrupt."""
    import _thread
    import signal
    import threading
    import time

    # A process in the background may have been started without the handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(after, _thread.interrupt_main).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call()
    took = time.monotonic() - start - after
    signal.signal(signal.SIGINT, before)
    print(f"{took:.2f} s after the interrupt")
    return took


def test_interrupt_ends_a_fit():
    """Ctrl-C while heads are trained raises KeyboardInterrupt; on an idle machine it takes less than 2 s."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 300)).astype(np.float32)
    y = rng.integers(100, size=20000)
    assert seconds_to_interrupt(lambda: CalmixClassifier().fit(X, y), 2.0) < 10


def test_interrupt_ends_predictions(digits):
    X, y, _ = digits
    classifier = CalmixClassifier().fit(X, y)
    many = np.tile(X, (2000, 1))
    assert seconds_to_interrupt(lambda: classifier.predict_proba(many), 0.3) < 10


def test_ids_are_refused_as_labels():
    with pytest.raises(ValueError, match="20000 classes for 20000 labels.*ids"):
        CalmixClassifier().fit(np.random.default_rng(0).normal(size=(20000, 4)), np.arange(20000))
