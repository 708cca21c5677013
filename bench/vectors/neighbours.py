"""Heads on neighbours beside scikit-learn: `neighbours.py CANDIDATES DRAWS LABELS[,LABELS...] [FEATURES TRAIN]...`; a row of a table for each
dataset, number of labels per class and classifier, means over the draws.

CANDIDATES is the program of `cargo build -p calmix-head --example candidates`. Each FEATURES is a folder with `vectors.npy`, of
which the first TRAIN are trained on, and `classes.npy`. scikit-learn's digits come first, with 1,200 of 1,797 to train on. scikit-learn
classifies the vectors as calmix does, centred and of unit length. One thread; `seconds` are the time on the processor.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

NOT_LABELLED = 2**32 - 1
OWN = {"LogisticRegression": "LR", "Em": "EM", "BalancedEm": "balanced EM", "LrEm": "LR + EM", "Neighbours": "neighbours", "LrNeighbours": "LR + neighbours"}


def measures(probabilities, truth):
    probabilities = np.maximum(probabilities.astype("float64"), 1e-30)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.minimum((confidence * 15).astype(int), 14)
    gap = sum(abs((confidence[bins == n] - right[bins == n]).sum()) for n in range(15)) / len(truth)
    return 100 * (1 - right.mean()), -np.log(probabilities[np.arange(len(truth)), truth]).mean(), 100 * gap


def of_peers(vectors, test, labels, truth):
    centre = vectors.mean(axis=0)
    unit = [rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (vectors - centre, test - centre)]
    kept = labels >= 0
    folds = StratifiedKFold(min(10, np.bincount(labels[kept]).min()), shuffle=True, random_state=0)
    base = LogisticRegression(C=10, max_iter=1000)
    peers = {
        "LogisticRegression, C = 10": base,
        "CalibratedClassifierCV, temperature": CalibratedClassifierCV(base, method="temperature", ensemble=False, cv=folds),
        "SelfTrainingClassifier": SelfTrainingClassifier(base),
        "LabelSpreading, 10-NN": LabelSpreading(kernel="knn", n_neighbors=10),
    }
    for name, peer in peers.items():
        begin = time.process_time()
        is_partial = name.startswith(("Self", "Label"))
        peer.fit(*(unit[0], labels) if is_partial else (unit[0][kept], labels[kept]))
        yield name, [*measures(peer.predict_proba(unit[1]), truth), time.process_time() - begin]


def of_calmix(program, vectors, test, labels, truth):
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("vectors", "labels", "test", "truth")]
        tables = [vectors.astype("float32"), np.where(labels < 0, NOT_LABELLED, labels).astype("uint32"), test.astype("float32"), truth.astype("uint32")]
        for path, table in zip(paths, tables):
            table.tofile(path)
        for neighbours in ("false", "true"):
            out = subprocess.run([program, *paths, neighbours], check=True, capture_output=True, text=True).stdout
            for row in map(json.loads, out.splitlines()):
                found = [100 * row["error"], row["nll"], 100 * row["ece"], row["seconds"]]
                if neighbours == "true":
                    yield OWN[row["head"]], found
                if row["kept"]:
                    yield "calmix, with neighbours" if neighbours == "true" else "calmix", found


def main():
    program, draws, of_class = sys.argv[1:4]
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    datasets = [("digits", digits.data[order], digits.target[order], 1200)]
    for folder, train in zip(sys.argv[4::2], sys.argv[5::2]):
        folder = Path(folder)
        datasets.append((folder.name, np.load(folder / "vectors.npy"), np.load(folder / "classes.npy").astype(int), int(train)))
    print("| data, labels | classifier | error | NLL | ECE | seconds |\n|---|---|---|---|---|---|")
    warnings.simplefilter("ignore")
    for name, vectors, classes, train in datasets:
        vectors = vectors.astype("float32")
        for per_class in map(int, of_class.split(",")):
            rows = {}
            for draw in range(int(draws)):
                random = np.random.default_rng([draw, per_class])
                kept = [random.choice(np.flatnonzero(classes[:train] == one), per_class, replace=False) for one in np.unique(classes)]
                labels = np.full(train, -1)
                labels[np.concatenate(kept)] = classes[np.concatenate(kept)]
                given = (vectors[:train], vectors[train:], labels, classes[train:])
                for classifier, found in [*of_calmix(program, *given), *of_peers(*given)]:
                    rows.setdefault(classifier, []).append(found)
            for classifier, found in rows.items():
                error, nll, ece, seconds = np.mean(found, axis=0)
                print(f"| {name}, {per_class} | {classifier} | {error:.1f} | {nll:.3f} | {ece:.1f} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
