"""Logistic regression of calmix beside scikit-learn's `LogisticRegressionCV`: `labels_alone.py PROGRAM [CELL...]`.

PROGRAM is the example `labels_alone` of calmix-head: `cargo build --release -p calmix-head --example labels_alone`. Both choose
among the same six values of C by ten folds and the NLL of the labels out of fold, on one thread. Vectors are centred and of unit
length for both. Their runs alternate; CPU seconds are the median of three where a run takes less than 20 s, and exclude
reading files. NLL is that of the labels out of fold at the chosen C: for calmix at the temperature of its calibrator, each label
at one that was fitted without it.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegressionCV

# Labels, numbers of a vector, classes, and how far apart the classes are.
CELLS = [
    (40, 64, 2, 0.3),
    (40, 1280, 10, 0.4),
    (250, 256, 10, 0.25),
    (400, 1280, 100, 0.4),
    (1000, 128, 10, 0.25),
    (1000, 512, 10, 0.2),
    (2500, 256, 100, 0.35),
    (2500, 1280, 10, 0.15),
    (5000, 128, 2, 0.1),
    (10000, 512, 10, 0.15),
    (20000, 64, 10, 0.2),
    (50000, 64, 2, 0.1),
]
STRENGTHS = [1, 3, 10, 30, 100, 300]
FOLDS = 10
LONG = 20


def drawn(labels, width, classes, distance):
    """Gaussian classes whose spread falls from direction to direction, as that of features does, turned at random."""
    draw = np.random.default_rng(labels + width + classes)
    spread = (1 + np.arange(width)) ** -0.5
    means = draw.normal(size=(classes, width)) * spread * distance
    truth = np.arange(labels) % classes
    vectors = means[truth] + draw.normal(size=(labels, width)) * spread
    vectors = vectors @ np.linalg.qr(draw.normal(size=(width, width)))[0]
    vectors -= vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype("float32"), truth.astype("uint32")


def scikit_learn(vectors, truth):
    folds = min(FOLDS, np.bincount(truth).min())
    model = LogisticRegressionCV(Cs=STRENGTHS, cv=folds, scoring="neg_log_loss", max_iter=1000)
    begin = time.process_time()
    model.fit(vectors, truth)
    seconds = time.process_time() - begin
    scores = model.scores_
    scores = np.asarray(next(iter(scores.values())) if isinstance(scores, dict) else scores)
    return seconds, float(-scores.reshape(-1, len(STRENGTHS)).mean(axis=0).max())


def calmix(program, vectors, truth):
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "vectors", Path(folder) / "labels"]
        vectors.tofile(files[0])
        truth.tofile(files[1])
        out = subprocess.run([program, *files, "0"], check=True, capture_output=True, text=True).stdout
    found = json.loads(out)
    return found["seconds"], found["nll"]


def main():
    program = sys.argv[1]
    cells = [CELLS[int(cell)] for cell in sys.argv[2:]] or CELLS
    warnings.simplefilter("ignore")
    print("| labels | numbers | classes | calmix, CPU s | scikit-learn, CPU s | ratio | NLL of calmix | of scikit-learn |")
    print("|---|---|---|---|---|---|---|---|")
    for cell in cells:
        data = drawn(*cell)
        ours, theirs = [], []
        while len(ours) < 3 and (not ours or max(ours + theirs)[0] < LONG):
            ours.append(calmix(program, *data))
            theirs.append(scikit_learn(*data))
        seconds = [float(np.median([run[0] for run in runs])) for runs in (ours, theirs)]
        row = [*map(str, cell[:3]), *(f"{number:.2f}" for number in seconds), f"{seconds[0] / seconds[1]:.2f}"]
        print("| " + " | ".join([*row, f"{ours[0][1]:.4f}", f"{theirs[0][1]:.4f}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
