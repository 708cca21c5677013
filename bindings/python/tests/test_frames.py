"""Frames and columns of pandas, Polars and PyArrow: the bits of arrays go in, and frames of the same library come out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from calmix import CalmixClassifier, calibration

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

NAMES = ["a", "b", "c"]
# Neither sorted, nor unique, nor numbers alone.
INDEX = [f"row {row}" if row % 3 else row // 2 for row in range(300)]


@pytest.fixture(scope="module")
def drawn():
    """Vectors of three classes, the labels `ant`, `bee` and `cow` with all but 30 of them `None`, and the truth."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=300)
    X = (np.eye(3)[codes] * 4 + rng.normal(size=(300, 3))).astype(np.float32)
    truth = np.array(["ant", "bee", "cow"], dtype=object)[codes]
    return X, [name if row < 30 else None for row, name in enumerate(truth)], truth


@pytest.fixture(scope="module")
def fitted(drawn):
    X, y, _ = drawn
    return CalmixClassifier().fit(X, y)


def arrow_table(X):
    return pa.table({name: X[:, number] for number, name in enumerate(NAMES)})


ROWS = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES, index=INDEX),
    "pandas-nullable": lambda X: pd.DataFrame(X, columns=NAMES, index=INDEX).astype("Float32"),
    "pandas-arrow": lambda X: pd.DataFrame(X, columns=NAMES, index=INDEX).astype("float[pyarrow]"),
    "pandas-categories": lambda X: pd.DataFrame(X, columns=NAMES, index=INDEX).astype("category"),
    "pandas-vectors": lambda X: pd.DataFrame({"embedding": list(X)}, index=INDEX),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "polars-vectors": lambda X: pl.DataFrame({"embedding": X}),
    "polars-lists": lambda X: pl.Series(X.tolist(), dtype=pl.List(pl.Float32)),
    "arrow": arrow_table,
    "arrow-batch": lambda X: arrow_table(X).to_batches()[0],
    "arrow-vectors": lambda X: pa.table({"embedding": pa.FixedSizeListArray.from_arrays(X.ravel(), 3)}),
    "arrow-lists": lambda X: pa.chunked_array([pa.array(X[:100].tolist()), pa.array(X[100:].tolist())]),
}
COLUMNS = {
    "pandas-string": lambda y: pd.Series(y, index=INDEX, dtype="string"),
    "pandas-category": lambda y: pd.Series(y, index=INDEX, dtype="category"),
    "pandas-arrow": lambda y: pd.Series(y, index=INDEX, dtype=pd.ArrowDtype(pa.string())),
    "polars": lambda y: pl.Series(y),
    "polars-categorical": lambda y: pl.Series(y, dtype=pl.Categorical),
    "polars-enum": lambda y: pl.Series(y, dtype=pl.Enum(["cow", "ant", "bee"])),
    "polars-frame": lambda y: pl.DataFrame({"label": y}),
    "arrow": lambda y: pa.array(y),
    "arrow-dictionary": lambda y: pa.chunked_array([y[:100], y[100:]], pa.string()).dictionary_encode(),
    "arrow-table": lambda y: pa.table({"label": y}),
}


@pytest.mark.parametrize("kind", ROWS)
def test_frame_has_the_bits_of_its_array(drawn, fitted, kind):
    X, y, _ = drawn
    rows = ROWS[kind](X)
    classifier = CalmixClassifier().fit(rows, y)
    wanted = fitted.predict_proba(X)
    assert (classifier.predict_proba(rows) == wanted).all()
    has_names = "vectors" not in kind and "lists" not in kind
    assert getattr(classifier, "feature_names_in_", [None])[0] == ("a" if has_names else None)


@pytest.mark.parametrize("kind", COLUMNS)
def test_column_of_labels_is_its_list(drawn, fitted, kind):
    X, y, truth = drawn
    with warnings.catch_warnings():
        # A frame has two dimensions.
        warnings.filterwarnings("ignore", "A column-vector y")
        classifier = CalmixClassifier().fit(X, COLUMNS[kind](y))
        score = classifier.score(X, COLUMNS[kind](y))
    assert classifier.classes_.tolist() == ["ant", "bee", "cow"]
    assert (classifier.predict_proba(X) == fitted.predict_proba(X)).all()
    assert score == fitted.score(X[:30], truth[:30])
    groups = COLUMNS[kind]([None if row % 5 == 0 else f"site {row % 7}" if "enum" not in kind else "ant" for row in range(300)])
    plain = [None if row % 5 == 0 else f"site {row % 7}" if "enum" not in kind else "ant" for row in range(300)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grouped = CalmixClassifier().fit(X, y, groups=groups)
        expected = CalmixClassifier().fit(X, y, groups=plain)
    assert (grouped.predict_proba(X) == expected.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (lambda y: pd.Series(y, dtype="Int16"), np.int16),
        (lambda y: pl.Series(y, dtype=pl.Int16), np.int16),
        (lambda y: pa.array(y, pa.int16()), np.int16),
        (lambda y: pa.array(y, pa.int16()).dictionary_encode(), np.int16),
    ],
)
def test_nullable_numbers_stay_integers(drawn, labels, dtype):
    X, y, _ = drawn
    codes = labels([None if name is None else ["ant", "bee", "cow"].index(name) for name in y])
    assert CalmixClassifier().fit(X, codes).predict(X).dtype == dtype


def test_answers_are_a_frame_of_the_same_library(drawn, fitted):
    X, _, _ = drawn
    frame = fitted.predict_frame(ROWS["pandas-vectors"](X), coverage=0.8, precision=0.8)
    assert list(frame.index) == INDEX
    assert list(frame.columns) == ["label", "confidence", "set", "abstain", "p(ant)", "p(bee)", "p(cow)"]
    probabilities = fitted.predict_proba(X)
    assert (frame[["p(ant)", "p(bee)", "p(cow)"]].to_numpy() == probabilities).all()
    assert frame["label"].tolist() == fitted.predict(X).tolist()
    assert (frame["confidence"].to_numpy() == probabilities.max(axis=1)).all()
    assert (frame["abstain"].to_numpy() == np.ma.getmaskarray(fitted.predict_or_abstain(X, precision=0.8))).all()
    members = fitted.predict_set(X, coverage=0.8)
    assert [sorted(names) for names in frame["set"]] == [fitted.classes_[row].tolist() for row in members]
    assert all(names[0] == label for names, label in zip(frame["set"], frame["label"]) if names)
    of_polars = fitted.predict_frame(pl.Series(X), coverage=0.8, precision=0.8)
    assert of_polars.schema["set"] == pl.List(pl.String) and of_polars.schema["abstain"] == pl.Boolean
    of_arrow = fitted.predict_frame(ROWS["arrow-vectors"](X), coverage=0.8, precision=0.8)
    assert of_arrow.schema.field("confidence").type == pa.float32()
    rows = frame.to_dict("records")
    assert of_polars.to_dicts() == rows and of_arrow.to_pylist() == rows
    assert fitted.predict_frame(X).index.tolist() == list(range(300))


def test_holes_and_lengths_are_named(fitted):
    cases = [
        (pl.DataFrame({"a": [1.0, None], "b": [1.0, 2.0], "c": [0.0, 1.0]}), "row 1 contains NaN"),
        (pa.table({"a": [None, 1.0], "b": [1.0, 2.0], "c": [0.0, 1.0]}), "row 0 contains NaN"),
        (pl.Series([[1.0, 2.0, 3.0], None]), "X: row 1 has no vector"),
        (pa.array([[1.0, 2.0, 3.0], None]), "X: row 1 has no vector"),
        (pd.Series([[1.0, 2.0, 3.0], None], index=["x", "x"]), "X: row 1 has no vector"),
        (pl.Series([[1.0, 2.0, 3.0], [1.0]]), "X: row 1 has 1 numbers, but row 0 has 3"),
        (pa.array([[1.0, 2.0, 3.0], [1.0]]), "X: row 1 has 1 numbers, but row 0 has 3"),
        (pd.Series([[1.0, 2.0, 3.0], [1.0]]), "X: row 1 has 1 numbers, but row 0 has 3"),
        (pl.DataFrame({"a": ["1", "x"], "b": ["1", "2"], "c": ["0", "1"]}), "could not convert string to float"),
    ]
    for rows, message in cases:
        with pytest.raises(ValueError, match=message):
            fitted.predict_proba(rows)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_in_another_order_are_refused(drawn, kind):
    X, y, _ = drawn
    rows = ROWS[kind](X)
    classifier = CalmixClassifier().fit(rows, y)
    turned = rows[["c", "b", "a"]] if kind != "arrow" else rows.select(["c", "b", "a"])
    with pytest.raises(ValueError, match="same order"):
        classifier.predict(turned)


def test_measures_take_columns(drawn, fitted):
    X, _, truth = drawn
    probabilities = fitted.predict_proba(X)
    codes = np.array(["ant", "bee", "cow"]).searchsorted(truth.astype(str))
    wanted = calibration.ece(codes, probabilities)
    for rows in [pd.DataFrame(probabilities, index=INDEX), pl.DataFrame(probabilities), arrow_table(probabilities)]:
        for labels in [pd.Series(truth, index=INDEX, dtype="category"), pl.Series(truth.tolist()), pa.array(truth.tolist())]:
            assert calibration.ece(labels, rows, labels=fitted.classes_) == wanted


@pytest.fixture
def routing():
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_groups_are_routed_through_a_pipeline(drawn, routing):
    from sklearn.base import clone
    from sklearn.model_selection import GroupKFold, cross_validate
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, _, truth = drawn
    groups = np.arange(300) // 6
    classifier = CalmixClassifier().set_fit_request(groups=True, drawn=False)
    pipeline = make_pipeline(StandardScaler(), clone(classifier))
    found = cross_validate(
        pipeline, X, truth, params={"groups": groups}, cv=GroupKFold(3), return_estimator=True, return_indices=True
    )
    train = found["indices"]["train"][0]
    scaled = StandardScaler().fit(X[train])
    with_groups = CalmixClassifier().fit(scaled.transform(X[train]), truth[train], groups=groups[train])
    without = CalmixClassifier().fit(scaled.transform(X[train]), truth[train])
    wanted = with_groups.predict_proba(scaled.transform(X))
    # Groups matter here, so that the test can fail.
    assert (wanted != without.predict_proba(scaled.transform(X))).any()
    assert (found["estimator"][0].predict_proba(X) == wanted).all()


def test_groups_that_nothing_requests_are_an_error(drawn, routing):
    from sklearn.exceptions import UnsetMetadataPassedError
    from sklearn.model_selection import GroupKFold, cross_validate

    X, _, truth = drawn
    with pytest.raises(UnsetMetadataPassedError, match="groups"):
        cross_validate(CalmixClassifier(), X, truth, params={"groups": np.arange(300) // 6}, cv=GroupKFold(3))
    with pytest.raises(TypeError, match="colour"):
        CalmixClassifier().set_fit_request(colour=True)


def test_requests_need_routing():
    with pytest.raises(RuntimeError, match="enable_metadata_routing"):
        CalmixClassifier().set_fit_request(groups=True)
