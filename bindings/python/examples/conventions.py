"""Where calmix differs from torchmetrics 1.9.0, netcal 1.4.0 and scikit-learn 1.9.1 by convention: a case for each difference.

    pip install calmix torchmetrics==1.9.0 netcal==1.4.0 scikit-learn==1.9.1
    python conventions.py

Each line has the difference, the number of calmix, the number of the other package, and the arguments with which calmix
computes the other number, if there are any.
"""

import math

import numpy as np
import torch
from calmix.calibration import brier_score, ece, nll, reliability_bins
from netcal.metrics import ECE
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss
from torchmetrics.functional.classification import multiclass_calibration_error


def torchmetrics_ece(rows, y_true, bins):
    """torchmetrics takes the predictions first, and decides by their range whether they are logits."""
    rows = torch.from_numpy(np.asarray(rows))
    return multiclass_calibration_error(rows, torch.tensor(y_true), rows.shape[1], n_bins=bins).item()


def show(difference, ours, package, theirs, same=None, how=""):
    assert not math.isclose(ours, theirs, abs_tol=1e-6), f"{difference}: both are {ours}"
    assert same is None or math.isclose(same, theirs, abs_tol=1e-6), f"{difference}: {same} is not {theirs}"
    print(f"| {difference} | {ours:.4g} | {package}: {theirs:.4g} | {how} |")


# One wrong prediction with confidence 1, one right one with 0.95. calmix has both in the bin [0.9, 1].
y = [1, 0]
p = np.array([[1.0, 0.0, 0.0], [0.95, 0.05, 0.0]])
show("a confidence of exactly 1 has a bin of its own", ece(y, p, bins=10), "torchmetrics", torchmetrics_ece(p, y, 10))

# Two predictions with confidence 0.7, one with 0.75. In float32, 0.7 is below 7/10; torchmetrics rounds the edge, too.
y = [0, 1, 0]
p = np.array([[0.7, 0.3, 0.0], [0.7, 0.3, 0.0], [0.75, 0.25, 0.0]], dtype=np.float32)
show(
    "edges of bins are rounded to float32",
    ece(y, p, bins=10),
    "torchmetrics",
    torchmetrics_ece(p, y, 10),
    ece(y, p.astype(np.float64).round(6), bins=10),
    "`y_prob` in float64",
)

# Logits between 0 and 1 are taken for probabilities.
y = [0, 0]
z = np.array([[0.9, 0.3, 0.1], [0.8, 0.4, 0.2]], dtype=np.float32)
show("logits between 0 and 1 are taken for probabilities", ece(y, logits=z), "torchmetrics", torchmetrics_ece(z, y, 15))

# Two classes: the predictions 0 and 1 have the confidences 0.9 and 0.8, class 1 has the probabilities 0.1 and 0.8.
y = [0, 0]
p = np.array([[0.9, 0.1], [0.2, 0.8]])
show("of two classes, class 1 is measured, not the predicted one", ece(y, p, bins=2), "netcal", ECE(2).measure(p, np.array(y)))

# The bins of scikit-learn are closed on the right: 0.8 is in (0.6, 0.8].
y = np.array([0, 1, 0])
p = np.array([[0.8, 0.2, 0.0], [0.8, 0.2, 0.0], [0.9, 0.1, 0.0]])
first = reliability_bins(y, p, bins=5)[0]
closed_right = reliability_bins(y, p, bins=5, edges="right")[0]
right, confidence = calibration_curve(p.argmax(axis=1) == y, p.max(axis=1), n_bins=5)
show(
    "a confidence on an edge is in the bin below: mean confidence of the first bin",
    first.confidence,
    "scikit-learn",
    confidence[0],
    closed_right.confidence,
    '`edges="right"`',
)

y = [0, 1]
p = np.array([[0.9, 0.1], [0.6, 0.4]])
show(
    "the Brier score of two classes is halved",
    brier_score(y, p),
    "scikit-learn",
    brier_score_loss(y, p[:, 1]),
    brier_score(y, p) / 2,
    "`brier_score(...) / 2`",
)

y = [0, 1]
p = np.array([[1.0, 0.0], [1.0, 0.0]])
show("the NLL of a probability of 0 is clipped", nll(y, p), "scikit-learn", log_loss(y, p))
