"""What the peers measure on inputs that the Rust tests draw again from the same streams.

Writes calibration_scores.csv and calibration_predictions.csv beside itself: versions in the first line, names in the
second, then one case per line. Inputs are not stored: case i is drawn from Seed(1).stream(Bootstrap, time, i).

    pip install torch torchmetrics netcal scikit-learn scipy relplot uncertainty-calibration
    python calibration_measures.py
"""

import importlib.metadata
import pathlib
import platform
import sys
import warnings

import calibration as kumar
import numpy as np
import relplot
import torch
from netcal.metrics import ECE
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, f1_score, precision_score, recall_score
from torchmetrics.functional.classification import multiclass_calibration_error
from torchmetrics.functional.classification.calibration_error import _ce_compute

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[2] / "calmix-core/tests/golden"))
from philox import Stream

SEED, BOOTSTRAP = 1, 9
SCORES, LARGE_SCORES, PREDICTIONS, CLASS_SCORES = 1200, 20, 1200, 100
BINS = [1, 2, 5, 8, 10, 15, 16, 20, 32]
# Edges that i / bins, np.linspace and torch.linspace round to the same number for every entry of BINS (checked below).
SPECIAL = [0.0, 1.0, 0.5, 0.25, 0.75, 0.1, 0.2, 0.4, 0.9, 0.125, 0.96875]


def below(stream, bound):
    return int(stream.uniform() * bound)


def scores(case):
    """Confidences and whether they were right."""
    if case >= SCORES:
        return large_scores(case)
    s = Stream(SEED, BOOTSTRAP, 0, case)
    n, bins, kind, calibrated = 1 + below(s, 40), BINS[below(s, len(BINS))], below(s, 4), s.uniform() < 0.5
    confidence, correct = [], []
    for _ in range(n):
        u = s.uniform()
        if kind == 1 or kind == 3 and s.uniform() < 0.5:
            c = SPECIAL[int(u * len(SPECIAL))]
        else:
            c = 1.0 - u * u * u if kind == 2 else u
        confidence.append(c)
        correct.append(s.uniform() < (c if calibrated else 0.7))
    return np.array(confidence), np.array(correct), bins, kind


def large_scores(case):
    """Many confidences, each up to 2 % too high: so even that smooth ECE needs a narrow kernel and a fine grid."""
    s = Stream(SEED, BOOTSTRAP, 0, case)
    n, bins, truth = 1000 + below(s, 2000), BINS[below(s, len(BINS))], 1.0 - 0.02 * s.uniform()
    confidence, correct, expected = sorted(s.uniform() for _ in range(n)), [], 0.0
    for c in confidence:
        before = int(expected)
        expected += c * truth
        correct.append(int(expected) > before)
    return np.array(confidence), np.array(correct), bins, 0


def predictions(case):
    """Probabilities that sum to one exactly (multiples of a power of two), labels, logits and a temperature."""
    s = Stream(SEED, BOOTSTRAP, 1, case)
    n, classes, bins = 1 + below(s, 40), 1 + below(s, 6), BINS[below(s, len(BINS))]
    grain, scale = [4, 16, 1 << 20][below(s, 3)], [1.0, 20.0, 200.0][below(s, 3)]
    temperature = 0.5 + 2.0 * s.uniform()
    p, z, labels = np.zeros((n, classes)), np.zeros((n, classes), np.float32), np.zeros(n, np.int64)
    for row in range(n):
        cuts = [0, *sorted(below(s, grain + 1) for _ in range(classes - 1)), grain]
        p[row] = np.diff(cuts) / grain
        z[row] = [np.float32((s.uniform() - 0.5) * scale) for _ in range(classes)]
        labels[row] = below(s, classes)
        if s.uniform() < 0.5:
            labels[row] = p[row].argmax()
    return p, labels, z, temperature, bins


def netcal_ece(bins, probability, happened):
    return ECE(bins).measure(probability, happened.astype(int))


def aurc(confidence, correct):
    """Every prediction weighs as likely as it is among the k most confident, ties broken by chance: no sorting."""
    above = (confidence[None, :] > confidence[:, None]).sum(1)
    equal = (confidence[None, :] == confidence[:, None]).sum(1)
    ks = range(1, len(confidence) + 1)
    return np.mean([np.sum(np.clip((k - above) / equal, 0, 1) * ~correct) / k for k in ks])


def score_case(case):
    confidence, correct, bins, kind = scores(case)
    c, y = torch.from_numpy(confidence), torch.from_numpy(correct.astype(float))
    data = list(zip(confidence.tolist(), correct.astype(float).tolist()))
    width = kumar.bin(data, kumar.get_equal_prob_bins(None, bins))
    whole = len(data) - len(data) % bins
    mass = ""
    if kind == 0 and whole:  # No ties, and no remainder that packages divide differently.
        mass = kumar.plugin_ce(kumar.equal_bin(data[:whole], bins), power=1)
    smooth, bandwidth = relplot.smECE(confidence, correct.astype(float), return_width=True)
    return {
        "torchmetrics_l1": _ce_compute(c, y, bins, "l1").item(),
        "netcal_ece": netcal_ece(bins, confidence, correct),
        "kumar_l1": kumar.plugin_ce(width, power=1),
        "kumar_debiased": kumar.unbiased_square_ce(width),
        "kumar_equal_mass": mass,
        "relplot_smece": smooth,
        "relplot_bandwidth": bandwidth,
        "aurc": aurc(confidence, correct),
    }


def prediction_case(case):
    p, labels, z, temperature, bins = predictions(case)
    classes = p.shape[1]
    y = torch.from_numpy(labels)
    softmax = torch.softmax(torch.from_numpy(z).double() / temperature, 1).numpy()
    # Single precision inside, whatever it is given.
    error = multiclass_calibration_error(torch.from_numpy(p), y, classes, bins, "l1", validate_args=classes > 1)
    brier = 0.0  # scikit-learn wants two classes or more.
    if classes > 1:
        brier = brier_score_loss(labels, p, labels=np.arange(classes), scale_by_half=False)
    return {
        "torchmetrics_f32_l1": error.item(),
        "sklearn_brier": brier,
        "torch_nll": torch.nn.functional.cross_entropy(torch.from_numpy(z).double() / temperature, y).item(),
        "netcal_class_wise": np.mean([netcal_ece(bins, p[:, k], labels == k) for k in range(classes)]),
        "netcal_logits_ece": netcal_ece(bins, softmax.max(1), softmax.argmax(1) == labels),
    }


def class_case(case):
    """Of the first class, nothing where it has no rows, or no predictions."""
    _, labels, z, _, _ = predictions(case)
    predicted = z.argmax(1)
    first = {"labels": [0], "average": None, "zero_division": np.nan}
    share = lambda found: "" if np.isnan(found[0]) else found[0]
    return {
        "sklearn_balanced_accuracy": balanced_accuracy_score(labels, predicted),
        "sklearn_macro_f1": f1_score(labels, predicted, average="macro"),
        "sklearn_recall": share(recall_score(labels, predicted, **first)),
        "sklearn_precision": share(precision_score(labels, predicted, **first)),
        "sklearn_f1": share(f1_score(labels, predicted, **first)),
    }


def write(name, cases):
    packages = ["torch", "torchmetrics", "netcal", "numpy", "scipy", "scikit-learn", "relplot", "uncertainty-calibration"]
    versions = [f"{p} {importlib.metadata.version(p)}" for p in packages]
    lines = [f"# python {platform.python_version()}, {', '.join(versions)}", ",".join(cases[0])]
    # 14 decimals: two below the tolerance of the comparison.
    for case in cases:
        lines.append(",".join("" if v == "" else f"{v:.14f}".rstrip("0") for v in case.values()))
    (HERE / name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for bins in BINS:
        for edge in set(np.arange(bins + 1) / bins) & set(SPECIAL):
            assert edge in np.linspace(0, 1, bins + 1), (bins, edge)
            assert edge in torch.linspace(0, 1, bins + 1, dtype=torch.float64).tolist(), (bins, edge)
    write("calibration_predictions.csv", [prediction_case(i) for i in range(PREDICTIONS)])
    write("class_scores.csv", [class_case(i) for i in range(CLASS_SCORES)])
    write("calibration_scores.csv", [score_case(i) for i in range(SCORES + LARGE_SCORES)])
