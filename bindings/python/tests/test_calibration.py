"""Measures against scikit-learn, torchmetrics and plain NumPy; calibrators; what is refused."""

import numpy as np
import pytest
from calmix import calibration


def drawn(seed, n=400, classes=5, dtype=np.float64):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, classes)) * rng.uniform(0.5, 4)
    labels = np.array([rng.choice(classes, p=p) for p in softmax(logits / rng.uniform(0.5, 2))])
    return labels, logits.astype(dtype), softmax(logits).astype(dtype)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def plain_ece(y, p, bins, right):
    """ECE by its definition."""
    confidence, correct = p.max(axis=1), p.argmax(axis=1) == y
    place = np.ceil(confidence * bins) - 1 if right else np.floor(confidence * bins)
    place = place.clip(0, bins - 1)
    total = 0.0
    for index in range(bins):
        rows = place == index
        if rows.any():
            total += rows.mean() * abs(confidence[rows].mean() - correct[rows].mean())
    return total


@pytest.mark.parametrize("seed", range(20))
def test_measures_follow_their_definitions(seed):
    from sklearn.metrics import log_loss

    y, logits, p = drawn(seed)
    for edges, right in [("left", False), ("right", True)]:
        assert calibration.ece(y, p, bins=10, edges=edges) == pytest.approx(plain_ece(y, p, 10, right), abs=1e-12)
    one_hot = np.eye(p.shape[1])[y]
    assert calibration.brier_score(y, p) == pytest.approx(((p - one_hot) ** 2).sum(axis=1).mean(), abs=1e-12)
    assert calibration.nll(y, p) == pytest.approx(log_loss(y, p, labels=range(5)), abs=1e-12)
    assert calibration.nll(y, logits=logits) == pytest.approx(calibration.nll(y, p), abs=1e-12)
    assert calibration.ece(y, logits=logits) == pytest.approx(calibration.ece(y, p), abs=1e-12)
    assert calibration.error(y, p) == (p.argmax(axis=1) != y).mean()
    gap = p.max(axis=1).mean() - (p.argmax(axis=1) == y).mean()
    assert calibration.confidence_gap(y, p) == pytest.approx(gap, abs=1e-12)
    class_wise = np.mean(
        [
            sum(
                rows.mean() * abs(p[rows, c].mean() - (y[rows] == c).mean())
                for index in range(15)
                if (rows := (np.floor(p[:, c] * 15).clip(0, 14) == index)).any()
            )
            for c in range(5)
        ]
    )
    assert calibration.class_wise_ece(y, p) == pytest.approx(class_wise, abs=1e-12)


def test_float64_is_not_rounded():
    """0.7 is in the bin [0.7, 0.8) of ten; rounded to float32 it would be in the one below."""
    y = np.array([0, 1, 0, 0])
    p = np.array([[0.7, 0.3], [0.7, 0.3], [0.65, 0.35], [0.72, 0.28]])
    bins = calibration.reliability_bins(y, p, bins=10)
    assert [each.count for each in bins] == [1, 3]
    rounded = calibration.reliability_bins(y, p.astype(np.float32), bins=10)
    assert [each.count for each in rounded] == [3, 1]


@pytest.mark.parametrize(
    "measure",
    ["ece", "class_wise_ece", "smooth_ece", "debiased_squared_error", "confidence_gap", "error", "nll", "brier_score", "aurc"],
)
def test_every_measure_has_an_interval(measure):
    y, _, p = drawn(1)
    function = getattr(calibration, measure)
    estimate = function(y, p, interval=0.9)
    assert estimate.level == 0.9 and float(estimate) == function(y, p)
    assert estimate.low < estimate.high
    assert estimate.low - 0.02 <= estimate.value <= estimate.high + 0.02
    assert function(y, p, interval=0.9) == estimate
    assert function(y, p.astype(np.float32), interval=0.9).value == pytest.approx(estimate.value, abs=2e-3)


def test_intervals_of_the_error_cover():
    """Of 300 draws with an error of 30%, a 90% interval misses at most 45: a binomial quantile of 0.998."""
    missed = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        y = (rng.uniform(size=200) < 0.3).astype(int)
        estimate = calibration.error(y, np.tile([0.8, 0.2], (200, 1)), interval=0.9)
        missed += not estimate.low <= 0.3 <= estimate.high
    assert missed <= 45, missed


def test_torch_tensors_are_read_and_others_refused():
    torch = pytest.importorskip("torch")
    y, logits, p = drawn(2, dtype=np.float32)
    tensor = torch.from_numpy(p)
    assert calibration.ece(torch.from_numpy(y), tensor) == calibration.ece(y, p)
    with pytest.raises(TypeError, match=r"y_prob\.detach\(\)"):
        calibration.ece(y, tensor.clone().requires_grad_())
    with pytest.raises(TypeError, match=r"y_prob\.float\(\)"):
        calibration.ece(y, tensor.bfloat16())
    with pytest.raises(TypeError, match=r"y_prob\.cpu\(\)"):
        calibration.ece(y, tensor.to("meta"))


def test_temperature_is_the_one_of_l_bfgs():
    """The same temperature as PyTorch's L-BFGS, within 1e-4."""
    torch = pytest.importorskip("torch")
    for seed in range(5):
        y, logits, _ = drawn(seed, n=2000)
        scaling = calibration.TemperatureScaling().fit(logits, y)
        log_t = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimiser = torch.optim.LBFGS([log_t], max_iter=100, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

        def closure():
            optimiser.zero_grad()
            scaled = torch.from_numpy(logits) / log_t.exp()
            loss = torch.nn.functional.cross_entropy(scaled, torch.from_numpy(y))
            loss.backward()
            return loss

        optimiser.step(closure)
        assert scaling.temperature_ == pytest.approx(float(log_t.exp()), abs=1e-4)
        before = calibration.nll(y, logits=logits)
        assert calibration.nll(y, scaling.predict_proba(logits).astype(np.float64)) <= before + 1e-6


def test_calibrators_fit_predict_and_pickle():
    import pickle

    y, logits, _ = drawn(3, n=1000)
    names = np.array(["a", "b", "c", "d", "e"])[y]
    for kind in [calibration.TemperatureScaling, calibration.VectorScaling, calibration.IsotonicCalibration]:
        calibrator = kind().fit(logits, names)
        p = calibrator.predict_proba(logits)
        assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
        assert set(calibrator.predict(logits)) <= set("abcde")
        assert (pickle.loads(pickle.dumps(calibrator)).predict_proba(logits) == p).all()
        with pytest.raises(AttributeError, match="not fitted"):
            kind().predict_proba(logits)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda y, z, p: calibration.ece(y, z), ValueError, "pass logits="),
        (lambda y, z, p: calibration.ece(y, p, logits=z), TypeError, "either"),
        (lambda y, z, p: calibration.ece(y), TypeError, "either"),
        (lambda y, z, p: calibration.ece(y, p * 0.5), ValueError, "sums to 0.5"),
        (lambda y, z, p: calibration.ece(y, p[:, 0]), ValueError, "column_stack"),
        (lambda y, z, p: calibration.ece(y[1:], p), ValueError, "one class per row, 400"),
        (lambda y, z, p: calibration.ece(y + 1, p), ValueError, "not one of the 5 classes"),
        (lambda y, z, p: calibration.ece(y.astype(str), p), ValueError, "labels=clf.classes_"),
        (lambda y, z, p: calibration.ece(y, p, bins=0), ValueError, "bins"),
        (lambda y, z, p: calibration.ece(y, p, binning="equal"), ValueError, "width"),
        (lambda y, z, p: calibration.ece(y, p, edges="up"), ValueError, "left"),
        (lambda y, z, p: calibration.ece(y, p, interval=95), ValueError, "0.95"),
        (lambda y, z, p: calibration.ece(y, np.where(p == p.max(), np.nan, p)), ValueError, "NaN"),
    ],
)
def test_bad_input_is_named(call, error, message):
    y, logits, p = drawn(4)
    with pytest.raises(error, match=message):
        call(y, logits, p)


def test_other_classes_are_named_by_labels():
    y, _, p = drawn(5)
    names = np.array(["e", "d", "c", "b", "a"])
    assert calibration.ece(names[y], p, labels=names) == calibration.ece(y, p)
