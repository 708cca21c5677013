"""Wrong labels, found by calmix and by its peers: `wrong_labels.py VECTORS NOISY PER_CLASS FIRST LAST`, with NumPy, safetensors, scikit-learn and
cleanlab. `$CALMIX` is the program.

VECTORS is a folder of `vectors.py` for CIFAR-10's training images, NOISY a file of CIFAR-10N with a byte per image. For each of the seeds FIRST to
LAST, PER_CLASS labels of each noisy class are trained on, with all other vectors unlabelled. The labels are ranked by the out-of-fold logit margin
of the head that calmix keeps, by cleanlab on the same probabilities, and by cleanlab and others on those of logistic regression out of fold or on
the features. A line per method: average precision and precision in the first 5%, in percent, with standard errors.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from cleanlab import Datalab
from cleanlab.rank import get_label_quality_scores
from safetensors.numpy import load_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

CALMIX = os.environ.get("CALMIX", "calmix")
# Of logistic regression; the one with the lowest out-of-fold NLL counts.
STRENGTHS = [1, 3, 10, 30, 100]


def softmax(logits):
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def margins(scores, labels):
    own = scores[np.arange(len(labels)), labels]
    others = scores.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return own - others.max(axis=1)


def out_of_fold(vectors, rows, labels):
    """The out-of-fold logits of the head that calmix keeps, in the order of `rows`, and its temperature."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.save(folder / "vectors.npy", vectors)
        with open(folder / "labels.csv", "w") as file:
            file.write("id,label\n")
            file.writelines(f"{row},{label}\n" for row, label in zip(rows, labels))
        subprocess.run([CALMIX, "train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run", "--quiet",
                        "--set", "evaluate.bootstrap=0"], cwd=folder, check=True, capture_output=True)
        (path,) = (folder / "run/predictions").glob("*out-of-fold*")
        stored = load_file(path)
        # Labelled rows come first in the table, in the order of the vectors.
        order = np.sort(rows)
        logits = dict(zip(order[stored["ids"].astype(int)], stored["logits"]))
        kept = json.loads((folder / "run/model.json").read_text())
        temperature = kept["calibration"].get("temperature", 1.0) if kept["calibration"] else 1.0
        return np.stack([logits[row] for row in rows]), temperature


def measure(quality, is_wrong):
    order = np.argsort(quality, kind="stable")
    first = order[: max(1, round(0.05 * len(order)))]
    return 100 * average_precision_score(is_wrong, -quality), 100 * is_wrong[first].mean()


def qualities(vectors, rows, labels):
    """A quality per label by each method: low if it may be wrong."""
    logits, temperature = out_of_fold(vectors, rows, labels)
    own = vectors[rows]
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    fitted = [cross_val_predict(LogisticRegression(C=strength, max_iter=1000), own, labels, cv=folds, method="predict_proba")
              for strength in STRENGTHS]
    regression = min(fitted, key=lambda probabilities: log_loss(labels, probabilities))
    neighbours = KNeighborsClassifier(10, weights="distance")
    nearest = cross_val_predict(neighbours, own, labels, cv=folds, method="predict_proba")
    with contextlib.redirect_stdout(io.StringIO()):
        lab = Datalab(data={"label": labels.tolist()}, label_name="label")
        lab.find_issues(features=own, issue_types={"label": {}})
    return {
        "calmix, out-of-fold logit margin": margins(logits.astype("float64"), labels),
        "cleanlab on the same probabilities": get_label_quality_scores(labels, softmax(logits.astype("float64") / temperature)),
        "cleanlab on logistic regression": get_label_quality_scores(labels, regression),
        "k-NN, 10 neighbours": nearest[np.arange(len(labels)), labels],
        "Datalab, features only": lab.get_issues("label")["label_score"].to_numpy(),
    }


def main():
    source, noisy = Path(sys.argv[1]), np.fromfile(sys.argv[2], "uint8").astype(int)
    per_class, first, last = map(int, sys.argv[3:6])
    vectors, classes, ids = (np.load(source / f"{name}.npy") for name in ["vectors", "classes", "ids"])
    noisy = noisy[ids]
    seen = {}
    for seed in range(first, last + 1):
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.permutation(np.flatnonzero(noisy == label))[:per_class] for label in range(10)])
        labels = noisy[rows]
        is_wrong = labels != classes[rows]
        for name, quality in qualities(vectors, rows, labels).items():
            seen.setdefault(name, []).append(measure(quality, is_wrong))
    for name, values in seen.items():
        mean, error = np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
        print(f"| {name} | {mean[0]:.1f} ± {error[0]:.1f} | {mean[1]:.0f} ± {error[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
