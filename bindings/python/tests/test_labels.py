"""Which labels mean that a sample has none, what one label per class leaves out, and which rows `score` counts."""

import warnings

import numpy as np
import pandas as pd
import pytest
from calmix import CalmixClassifier, calibration


@pytest.fixture(scope="module")
def drawn():
    """Vectors of three classes, the labels 3, 4 and 5 with all but 30 of them −1, and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, 6, size=300)
    X = np.eye(3)[truth - 3] * 4 + rng.normal(size=(300, 3))
    return X, np.where(np.arange(300) < 30, truth, -1), truth


@pytest.fixture(scope="module")
def fitted(drawn):
    X, y, _ = drawn
    return CalmixClassifier().fit(X, y)


def one_per_class(drawn):
    """Labels of which each class has one."""
    _, y, truth = drawn
    y = np.full_like(y, -1)
    for label in [3, 4, 5]:
        y[np.flatnonzero(truth == label)[0]] = label
    return y


def test_one_label_per_class_warns(drawn):
    X, _, _ = drawn
    with pytest.warns(UserWarning, match=r"not calibrated.* y has 0 such labels.* at least two per class, and 10 in all"):
        classifier = CalmixClassifier().fit(X, one_per_class(drawn))
    assert classifier.calibrator_ is None and len(classifier.out_of_fold_.rows) == 0
    assert all(candidate.nll is None and candidate.calibrator is None for candidate in classifier.candidates_)
    assert classifier.nll_difference_ is None and classifier.helped_ is None


def test_enough_labels_do_not_warn(drawn):
    X, y, _ = drawn
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CalmixClassifier().fit(X, y).calibrator_ is not None


@pytest.mark.parametrize(
    ("missing", "kind"),
    [
        (lambda y: pd.Series(y).replace(-1, pd.NA).astype("Int64"), "i"),
        (lambda y: pd.Series(y).replace(-1, pd.NA).astype("Int64").array, "i"),
        (lambda y: pd.DataFrame({"label": pd.Series(y, index=np.arange(300) + 7).replace(-1, pd.NA)}).astype("Int8"), "i"),
        (lambda y: pd.Series(y).replace(-1, pd.NA).astype("category"), "iO"),
        (lambda y: pd.Series(y).replace(-1, pd.NA).astype("Float64"), "f"),
        (lambda y: pd.Series(y).replace(-1, np.nan), "f"),
        (lambda y: pd.Series(y.astype(str)).replace("-1", pd.NA).astype("string"), "O"),
        (lambda y: pd.Series(y.astype(str)).replace("-1", None), "O"),
        (lambda y: np.where(y < 0, pd.NA, y), "O"),
        (lambda y: [None if label < 0 else str(label) for label in y], "O"),
        (lambda y: np.ma.masked_array(np.where(y < 0, 3, y), mask=y < 0), "i"),
        (lambda y: np.ma.masked_array(np.where(y < 0, "wrong", y.astype(str)), mask=y < 0), "U"),
        (lambda y: np.ma.masked_array(np.where(y % 2 == 0, 4, y), mask=(y < 0) & (np.arange(300) < 200)), "i"),
    ],
)
def test_missing_labels_are_unlabelled(drawn, fitted, missing, kind):
    X, y, truth = drawn
    with warnings.catch_warnings():
        # A frame has two dimensions.
        warnings.filterwarnings("ignore", "A column-vector y")
        classifier = CalmixClassifier().fit(X, missing(y))
        score = classifier.score(X, missing(y))
    assert classifier.classes_.dtype.kind in kind and classifier.predict(X).dtype == classifier.classes_.dtype
    assert [int(label) for label in classifier.classes_] == [3, 4, 5]
    assert (classifier.predict_proba(X) == fitted.predict_proba(X)).all()
    assert score == fitted.score(X[:30], truth[:30])


def test_score_ignores_unlabelled_rows(drawn, fitted):
    X, y, truth = drawn
    labelled = fitted.score(X[:30], truth[:30])
    assert labelled > 0.9 and fitted.score(X, y) == labelled
    weights = np.where(y >= 0, 2.0, 1e6)
    assert fitted.score(X, y, sample_weight=weights) == labelled
    with pytest.raises(ValueError, match="y has no label"):
        fitted.score(X, np.full(300, -1))
    with pytest.raises(ValueError, match="299 labels"):
        fitted.score(X, y[:-1])
    with pytest.raises(ValueError, match="sample_weight has the shape"):
        fitted.score(X, y, sample_weight=weights[:-1])


def test_cross_validation_ignores_unlabelled_rows(drawn):
    from sklearn.model_selection import cross_val_score

    X, y, _ = drawn
    scores = cross_val_score(CalmixClassifier(), X, y, cv=3)
    assert scores.min() > 0.7, scores


def test_masked_values_are_refused(drawn, fitted):
    X, y, _ = drawn
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    assert (fitted.predict_proba(masked) == fitted.predict_proba(X)).all()
    masked[7, 1] = np.ma.masked
    calls = [
        lambda: CalmixClassifier().fit(masked, y),
        lambda: fitted.predict(masked),
        lambda: fitted.predict(list(masked)),
        lambda: calibration.ece(np.zeros(len(X), dtype=int), logits=masked),
        lambda: calibration.ece(np.ma.masked_array(np.zeros(len(X), dtype=int), mask=np.arange(len(X)) == 7), logits=X),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="row 7 has a masked value"):
            call()


def test_mixed_types_of_labels_are_refused(drawn):
    X, y, _ = drawn
    mixed = y.astype(object)
    mixed[:10] = "cat"
    with pytest.raises(TypeError, match="y mixes labels of several types"):
        CalmixClassifier().fit(X, mixed)


def test_long_class_names_are_refused(drawn):
    X, y, _ = drawn
    with pytest.raises(ValueError, match="y: the class name"):
        CalmixClassifier().fit(X, np.where(y < 0, "", np.char.add("n" * 2000, y.astype(str))))


def test_missing_values_in_vectors_have_their_row(drawn):
    X, y, _ = drawn
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).astype("Float64")
    frame.iloc[5, 1] = pd.NA
    with pytest.raises(ValueError, match="row 5 contains NaN"):
        CalmixClassifier().fit(frame, y)
    with pytest.raises(ValueError, match="row 5 contains NaN"):
        CalmixClassifier().fit(frame.astype(object), y)
