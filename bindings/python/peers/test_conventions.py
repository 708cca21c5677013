"""Measures against torchmetrics, netcal and scikit-learn: equal on drawn predictions, and different where conventions are."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
from calmix import calibration
from netcal.metrics import ECE
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss
from torchmetrics.functional.classification import multiclass_calibration_error

PACKAGE = Path(__file__).resolve().parents[1]
DRAWS = 100


def drawn(seed):
    """Labels, float64 logits, probabilities of three to eight classes, and a number of bins; netcal needs three classes in y."""
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(3, 9))
    logits = rng.normal(size=(int(rng.integers(60, 300)), classes)) * rng.uniform(0.5, 4)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    labels = np.where(rng.uniform(size=len(logits)) < 0.6, logits.argmax(axis=1), rng.integers(classes, size=len(logits)))
    return labels, logits, exponentials / exponentials.sum(axis=1, keepdims=True), int(rng.choice([1, 5, 10, 15, 20]))


def test_peers_have_the_named_versions():
    named = (PACKAGE / "examples/conventions.py").read_text()
    for package in ("torchmetrics", "netcal", "scikit-learn"):
        assert f"{package}=={version(package)}" in named


@pytest.mark.parametrize("seed", range(DRAWS))
def test_ece_is_that_of_torchmetrics_and_netcal(seed):
    y, logits, p, bins = drawn(seed)
    ours = calibration.ece(y, p, bins=bins)
    # torchmetrics sums up to 300 numbers of order one in float32.
    theirs = multiclass_calibration_error(torch.from_numpy(p), torch.from_numpy(y), p.shape[1], n_bins=bins).item()
    assert theirs == pytest.approx(ours, abs=2e-5)
    theirs = multiclass_calibration_error(torch.from_numpy(logits), torch.from_numpy(y), p.shape[1], n_bins=bins).item()
    assert theirs == pytest.approx(calibration.ece(y, logits=logits, bins=bins), abs=2e-5)
    assert ECE(bins).measure(p, y) == pytest.approx(ours, abs=1e-12)
    # netcal measures single probabilities as the second of two classes.
    classes = [ECE(bins).measure(p[:, column], (y == column).astype(int)) for column in range(p.shape[1])]
    assert np.mean(classes) == pytest.approx(calibration.class_wise_ece(y, p, bins=bins), abs=1e-12)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_scores_and_curves_are_those_of_scikit_learn(seed):
    y, _, p, bins = drawn(seed)
    columns = np.arange(p.shape[1])
    assert calibration.nll(y, p) == pytest.approx(log_loss(y, p, labels=columns), abs=1e-12)
    assert calibration.brier_score(y, p) == pytest.approx(brier_score_loss(y, p, labels=columns), abs=1e-12)
    found = calibration.reliability_bins(y, p, bins=bins, edges="right")
    accuracy, confidence = calibration_curve(p.argmax(axis=1) == y, p.max(axis=1), n_bins=bins)
    assert [each.accuracy for each in found] == pytest.approx(accuracy, abs=1e-12)
    assert [each.confidence for each in found] == pytest.approx(confidence, abs=1e-12)


def test_table_of_conventions_is_what_its_script_prints():
    script = PACKAGE / "examples/conventions.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (PACKAGE.parents[1] / "docs/guides/python.md").read_text()
    lines = done.stdout.splitlines()
    assert len(lines) == 7
    for line in lines:
        assert line in page
