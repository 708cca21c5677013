"""Prediction sets, abstention and the monitor around any model, in the conventions of scikit-learn."""

import json
import pickle

import numpy as np
import pytest
from calmix import Abstainer, CalmixClassifier, Monitor, PredictionSets
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

NAMES = np.array(["cat", "dog", "owl", "yak"])


def drawn(n, seed, names=NAMES, sharpness=0.3):
    """Calibrated probabilities, with labels drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(len(names), sharpness), size=n)
    labels = (p.cumsum(axis=1) > rng.uniform(size=(n, 1))).argmax(axis=1)
    return names[labels], p


@pytest.mark.parametrize("rule", ["lac", "aps", "lac-by-class"])
@pytest.mark.parametrize("allow_empty", [False, True])
def test_sets_cover_as_requested(rule, allow_empty):
    # The coverage of a draw of 100 labels varies by 0.03 (0.06 for a class of 25), so its mean over 60 draws by 0.004 (0.008).
    covered = []
    sizes = []
    for seed in range(60):
        y, p = drawn(1100, seed)
        sets = PredictionSets(0.8, rule=rule, allow_empty=allow_empty).fit(y[:100], p[:100])
        report = sets.report(y[100:], p[100:])
        covered.append(report.coverage.value)
        sizes.append(report.mean_size)
        assert allow_empty or report.empty == 0
    exact = 0.03 if rule == "lac-by-class" else 0.012
    assert 0.788 < np.mean(covered) < 0.8 + 0.01 + exact + (0 if allow_empty else 0.03)
    assert np.mean(sizes) < 2.5


def test_sets_are_those_of_the_estimator(digits):
    # Each label is scored out of fold, so the out-of-fold probabilities lead to the same thresholds; without links, no two are a group.
    X, y, truth = digits
    classifier = CalmixClassifier(settings={"labels.link_copies": False}).fit(X[:1200], y[:1200])
    held_out = classifier.out_of_fold_
    for rule in ["lac", "lac-by-class"]:
        sets = PredictionSets(0.9, rule=rule).fit(held_out.y, held_out.probabilities, labels=classifier.classes_)
        probabilities = classifier.predict_proba(X[1200:])
        np.testing.assert_array_equal(sets.predict_set(probabilities), classifier.predict_set(X[1200:], 0.9, rule=rule))


def test_conventions_of_scikit_learn():
    y, p = drawn(300, 0)
    for estimator in [
        PredictionSets(0.8, rule="aps", random_state=3),
        Abstainer([0.8, 0.9], delta=0.2),
        Monitor(random_state=5),
    ]:
        copy = clone(estimator)
        assert copy.get_params() == estimator.get_params() and repr(copy) == repr(estimator)
        assert copy.set_params(**estimator.get_params()) is copy
        with pytest.raises(ValueError, match="Invalid parameter 'gamma'"):
            copy.set_params(gamma=1)
    assert repr(PredictionSets(0.8)) == "PredictionSets(coverage=0.8)"
    sets = PredictionSets(rule="aps")
    assert sets.fit(y, p) is sets and not sets.get_params()["allow_empty"]
    assert list(sets.classes_) == list(NAMES)
    again = pickle.loads(pickle.dumps(sets))
    np.testing.assert_array_equal(again.predict_set(p), sets.predict_set(p))
    for unfitted in [lambda: PredictionSets().predict_set(p), lambda: Abstainer().predict(p), lambda: Monitor().update(p)]:
        with pytest.raises(NotFittedError, match="call fit"):
            unfitted()


def test_float32_threads_and_other_coverages():
    y, p = drawn(9000, 1)
    sets = PredictionSets(0.9).fit(y[:500], p[:500])
    at_80 = sets.predict_set(p[500:], coverage=0.8)
    np.testing.assert_array_equal(at_80, PredictionSets(0.8, n_jobs=2).fit(y[:500], p[:500]).predict_set(p[500:]))
    assert (at_80 <= sets.predict_set(p[500:])).all()
    single = PredictionSets(0.8).fit(y[:500], p[:500].astype(np.float32)).predict_set(p[500:].astype(np.float32))
    assert (single == at_80).mean() > 0.999


def test_missing_classes_need_their_names():
    y, p = drawn(200, 2)
    kept = y != "yak"
    with pytest.raises(ValueError, match="pass the classes of the columns"):
        PredictionSets().fit(y[kept], p[kept])
    sets = PredictionSets(rule="lac-by-class").fit(y[kept], p[kept], labels=NAMES)
    with pytest.warns(UserWarning, match="in every set: yak"):
        assert sets.predict_set(p)[:, 3].all()
    codes = np.searchsorted(NAMES, y[kept])
    assert list(PredictionSets().fit(codes, p[kept]).classes_) == [0, 1, 2, 3]


def test_few_labels_give_all_classes():
    y, p = drawn(8, 3)
    with pytest.warns(UserWarning, match="8 labels are too few for a coverage of 0.9, which needs 9"):
        assert PredictionSets().fit(y, p, labels=NAMES).predict_set(p).all()
    y, p = drawn(400, 3)
    groups = np.arange(400) // 50
    with pytest.warns(UserWarning, match="8 groups of labels are too few"):
        assert PredictionSets().fit(y, p, groups=groups).predict_set(p).all()


def test_invalid_arguments_are_named():
    y, p = drawn(50, 4)
    for call, message in [
        (lambda: PredictionSets(1.5).fit(y, p), "coverage is 1.5"),
        (lambda: PredictionSets(rule="raps").fit(y, p), "rule is 'raps'"),
        (lambda: PredictionSets().fit(p, y), r"fit\(y, probabilities\)"),
        (lambda: PredictionSets().fit(y, np.log(p)), "logits"),
        (lambda: PredictionSets().fit(y, 2 * p), "row 0"),
        (lambda: PredictionSets().fit(y[1:], p), "one class per row"),
        (lambda: PredictionSets().fit(y, p, groups=[1, 2]), "groups has 2"),
        (lambda: PredictionSets().fit(y, p).predict_set(p[:, :3]), "3 columns, but those of the fit have 4"),
        (lambda: PredictionSets().fit(y, p).predict_set(p * np.nan), "row 0 contains NaN"),
        (lambda: PredictionSets().fit(y, p).predict_set(p, coverage=0), "coverage is 0"),
        (lambda: Abstainer([]).fit(y, p), "precision is empty"),
        (lambda: Abstainer([0.9, "high"]).fit(y, p), "precision is 'high'"),
        (lambda: Abstainer(delta=0).fit(y, p), "delta is 0"),
        (lambda: Abstainer([0.8, 0.9]).fit(y, p).predict(p), "pass precision="),
        (lambda: Abstainer(0.8).fit(y, p).predict(p, precision=0.9), "was not fitted"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_abstainer_keeps_its_precision():
    broken = 0
    answered = []
    for seed in range(200):
        y, p = drawn(300, seed, sharpness=0.15)
        abstainer = Abstainer(0.9).fit(y, p)
        [threshold] = abstainer.thresholds_
        if threshold is None:
            continue
        # Probabilities are calibrated, so that the true precision is the mean confidence of the answers.
        _, many = drawn(20_000, 10_000 + seed, sharpness=0.15)
        answers = abstainer.answers(many)
        broken += many[answers].max(axis=1).mean() < 0.9
        answered.append(answers.mean())
        assert threshold.answered >= threshold.right > 0 and 0 < threshold.confidence < 1
    # A tenth of 200, with a standard deviation of 4.2.
    assert broken <= 32 and np.mean(answered) > 0.2


def test_several_precisions_answer_in_order():
    y, p = drawn(2000, 5, sharpness=0.1)
    abstainer = Abstainer([0.95, 0.8]).fit(y[:1000], p[:1000])
    strict, lax = (abstainer.answers(p[1000:], precision=precision) for precision in (0.95, 0.8))
    assert (strict <= lax).all() and 0 < strict.mean() < lax.mean()
    reports = abstainer.report(y[1000:], p[1000:])
    assert [each.guaranteed for each in reports] == [0.95, 0.8]
    assert all(each.precision.high >= each.guaranteed for each in reports)
    answers = abstainer.predict(p[1000:], precision=0.95)
    np.testing.assert_array_equal(~answers.mask, strict)
    assert set(answers.compressed()) <= set(NAMES)


def test_unreachable_precision_warns():
    y, p = drawn(20, 6)
    abstainer = Abstainer(0.99).fit(y, p, labels=NAMES)
    with pytest.warns(UserWarning, match="no threshold reaches a precision of 0.99 on 20 labels"):
        assert abstainer.predict(p).mask.all()
    with pytest.warns(UserWarning):
        assert abstainer.report(y, p)[0].precision is None


def test_guarantees_around_a_model_of_scikit_learn(digits):
    X, _, truth = digits
    model = LogisticRegression(max_iter=200).fit(X[:600] / 16, truth[:600])
    p = model.predict_proba(X / 16)
    sets = PredictionSets(0.95).fit(truth[600:1200], p[600:1200], labels=model.classes_)
    assert sets.report(truth[1200:], p[1200:]).coverage.high >= 0.95
    abstainer = Abstainer(0.98).fit(truth[600:1200], p[600:1200], labels=model.classes_)
    [report] = abstainer.report(truth[1200:], p[1200:])
    assert report.precision.high >= 0.98 and report.answered > 0.5
    monitor = Monitor().fit(p[600:1200])
    assert not monitor.update(p[1200:1500]).alarm
    assert monitor.update(model.predict_proba(X[1500:, ::-1] / 16)).alarm


def test_monitor_resumes_from_json():
    rng = np.random.default_rng(7)
    reference = rng.normal(size=300)
    batches = [rng.normal(0.05 * day, 1, size=100) for day in range(20)]
    whole = Monitor().fit(reference)
    resumed = Monitor().fit(reference)
    for batch in batches:
        resumed = Monitor.from_json(resumed.to_json())
        assert resumed.update(batch) == whole.update(batch)
    assert whole.state_.alarm and whole.state_.rows == 2000 and whole.state_.batches == 20
    assert pickle.loads(pickle.dumps(whole)).state_ == whole.state_


def test_hostile_states_are_refused():
    state = json.loads(Monitor().fit(np.arange(100.0)).to_json())
    for change in [
        {"martingale": {**state["martingale"], "rows": 7}},
        {"martingale": {**state["martingale"], "capital": [[0]]}},
        {"martingale": None},
        {"classes": "ten"},
        {"random_state": [1]},
    ]:
        with pytest.raises(ValueError, match="not the state of a Monitor"):
            Monitor.from_json(json.dumps({**state, **change}))
    for text in ["", "{}", "[]", "[" * 100_000]:
        with pytest.raises(ValueError, match="not the state of a Monitor"):
            Monitor.from_json(text)


def test_monitor_refuses_other_rows():
    monitor = Monitor().fit(np.arange(100.0))
    for batch, message in [(np.ones((5, 3)), "expected scores"), ([np.nan], "finite"), (["a"], "not numeric")]:
        with pytest.raises(ValueError, match=message):
            monitor.update(batch)
    with pytest.raises(ValueError, match="at least 50 samples"):
        Monitor().fit(np.arange(20.0))
    with pytest.raises(ValueError, match="expected rows of 4 probabilities"):
        Monitor().fit(drawn(60, 0)[1]).update(np.ones(5))
