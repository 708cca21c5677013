"""`PredictionSets` against MAPIE and crepes: the same sets on drawn cases under the same conventions, and different ones where those are.

The conventions: calmix puts the likeliest class into every set and takes that into account in its thresholds; with `allow_empty=True`
its sets are those of the literature, as in the peers. crepes includes a class whose p-value equals 1 − confidence, which calmix
excludes; the draws avoid such a tie, and `test_conventions_that_differ` shows it. MAPIE always randomises the scores of APS, with
draws of its own.
"""

from importlib.metadata import version

import numpy as np
import pytest
from calmix import PredictionSets
from crepes import ConformalClassifier
from crepes.extras import hinge
from mapie.classification import SplitConformalClassifier

CASES = 1000


class Fixed:
    """A fitted classifier whose inputs are its probabilities, which is how MAPIE takes the model of anybody."""

    def __init__(self, classes):
        self.classes_ = np.arange(classes)
        self.n_features_in_ = classes

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)

    def __sklearn_is_fitted__(self):
        return True


class Draws(np.random.RandomState):
    """The fractions of calmix in place of MAPIE's uniform numbers."""

    def __init__(self, fractions):
        super().__init__(0)
        self.fractions = fractions

    def uniform(self, size):
        return np.resize(self.fractions, size)


def drawn(seed, fewest=2, ties=3):
    """Labels of all classes and probabilities, half for the fit, with ties in every third case; and a coverage without ties of ranks."""
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(fewest, 9))
    n = int(rng.integers(40, 200))
    p = rng.dirichlet(np.full(classes, rng.uniform(0.2, 2)), size=2 * n)
    if ties and seed % ties == 0:
        p = np.floor(8 * p) / 8
        p[:, 0] += 1 - p.sum(axis=1)
    y = (p.cumsum(axis=1) > rng.uniform(size=(2 * n, 1))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    # (n + 1)(1 − coverage) is far from a whole number, and so is that of most classes.
    coverage = 1 - (int(rng.integers(2, (n + 1) // 2)) + np.sqrt(0.2)) / (n + 1)
    return y, p, n, coverage


def mapie_sets(y, p, n, coverage, score="lac", draws=None, **params):
    mapie = SplitConformalClassifier(Fixed(p.shape[1]), coverage, score, random_state=draws)
    mapie.conformalize(p[:n], y[:n])
    return mapie.predict_set(p[n:], conformity_score_params=params or None)[1][:, :, 0]


def test_peers_have_the_named_versions():
    assert (version("mapie"), version("crepes")) == ("1.6.0", "0.9.1")


@pytest.mark.parametrize("block", range(10))
def test_lac_is_that_of_mapie_and_crepes(block):
    for seed in range(block * CASES // 10, (block + 1) * CASES // 10):
        y, p, n, coverage = drawn(seed)
        classes = p.shape[1]
        ours = PredictionSets(coverage, allow_empty=True).fit(y[:n], p[:n]).predict_set(p[n:])
        np.testing.assert_array_equal(ours, mapie_sets(y, p, n, coverage), err_msg=f"{seed}")
        alphas = hinge(p[:n], np.arange(classes), y[:n])
        crepes = ConformalClassifier().fit(alphas)
        theirs = crepes.predict_set(hinge(p[n:]), confidence=coverage, smoothing=False)
        np.testing.assert_array_equal(ours, theirs.astype(bool), err_msg=f"{seed}")


@pytest.mark.parametrize("block", range(10))
@pytest.mark.filterwarnings("ignore:.*of labels|.*labels per class")
def test_by_class_is_that_of_crepes(block):
    for seed in range(block * CASES // 10, (block + 1) * CASES // 10):
        y, p, n, coverage = drawn(seed)
        classes = np.arange(p.shape[1])
        ours = PredictionSets(coverage, rule="lac-by-class", allow_empty=True).fit(y[:n], p[:n]).predict_set(p[n:])
        crepes = ConformalClassifier().fit(hinge(p[:n], classes, y[:n]), bins=y[:n])
        columns = []
        for column in classes:
            # (m + 1)(1 − coverage) of the m labels of a class may be whole: crepes then includes a class more.
            ranks = ((y[:n] == column).sum() + 1) * (1 - coverage)
            assert abs(ranks - round(ranks)) > 1e-9, seed
            bins = np.full(n, column)
            p_values = crepes.predict_p(hinge(p[n:])[:, [column]], bins=bins, all_classes=True, smoothing=False)
            columns.append(p_values[:, 0] >= 1 - coverage)
        np.testing.assert_array_equal(ours, np.column_stack(columns), err_msg=f"{seed}")


@pytest.mark.parametrize("block", range(10))
def test_aps_is_that_of_mapie_up_to_the_last_class(block):
    for seed in range(block * CASES // 10, (block + 1) * CASES // 10):
        # MAPIE refuses two classes, and sorts equal probabilities in another order.
        y, p, n, coverage = drawn(seed, fewest=3, ties=0)
        sets = PredictionSets(coverage, rule="aps", allow_empty=True, random_state=seed)
        # The score of a sure row is its fraction; MAPIE subtracts what calmix leaves out.
        sure = np.eye(p.shape[1])[np.zeros(n, dtype=int)]
        fractions = 1 - sets.fit(np.zeros(n, dtype=int), sure).scores_
        sets.fit(y[:n], p[:n])
        mapie = SplitConformalClassifier(Fixed(p.shape[1]), coverage, "aps", random_state=Draws(fractions))
        mapie.conformalize(p[:n], y[:n])
        theirs = np.asarray(mapie._mapie_classifier.conformity_scores_).ravel()
        np.testing.assert_allclose(sets.scores_, theirs, atol=1e-12, err_msg=f"{seed}")
        with_last = mapie.predict_set(p[n:], conformity_score_params={"include_last_label": True})[1][:, :, 0]
        without = mapie.predict_set(p[n:], conformity_score_params={"include_last_label": False})[1][:, :, 0]
        ours = sets.predict_set(p[n:])
        assert (ours <= with_last).all(), seed
        # MAPIE keeps the likeliest class in these sets.
        several = without.sum(axis=1) > 1
        assert (without[several] <= ours[several]).all(), seed
        whole = PredictionSets(coverage, rule="aps", randomised=False, allow_empty=True).fit(y[:n], p[:n])
        np.testing.assert_array_equal(whole.predict_set(p[n:]), by_definition(y, p, n, coverage), err_msg=f"{seed}")


def by_definition(y, p, n, coverage):
    """APS without randomisation: the classes whose cumulated probability is at most that rank of those of the labels."""
    order = np.argsort(-p, axis=1)
    cumulated = np.empty_like(p)
    np.put_along_axis(cumulated, order, np.take_along_axis(p, order, axis=1).cumsum(axis=1), axis=1)
    scores = np.sort(cumulated[np.arange(n), y[:n]])
    return cumulated[n:] <= scores[int(np.ceil((n + 1) * coverage)) - 1]


def test_conventions_that_differ():
    p = np.column_stack([np.linspace(0.5, 0.95, 19), 1 - np.linspace(0.5, 0.95, 19)])
    y = np.zeros(19, dtype=int)
    coverage = 0.9
    ours = PredictionSets(coverage, allow_empty=True).fit(y, p, labels=[0, 1])
    # The 18th of 19 scores: two of twenty ranks are above, so that the p-value of the 19th is 2/20 = 1 − coverage. Not included.
    assert ours.thresholds_[0] == np.sort(1 - p[:, 0])[17]
    crepes = ConformalClassifier().fit(1 - p[:, 0])
    included = crepes.predict_set(np.array([[0.48]]), confidence=0.9 + 1e-12, smoothing=False)
    assert included[0, 0] == 1 and 0.48 > ours.thresholds_[0]
    # By default the likeliest class is in every set, and costs no coverage: the score of a right prediction is zero.
    unsure = np.full((1, 2), 0.5)
    assert ours.predict_set(unsure).sum() == 0
    by_default = PredictionSets(coverage).fit(y, p, labels=[0, 1])
    assert by_default.predict_set(unsure).tolist() == [[True, False]] and by_default.thresholds_[0] == 0
