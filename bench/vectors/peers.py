"""scikit-learn on the draws of `runs.py`: `peers.py FEATURES OUT PER_CLASS FIRST LAST [alone]`; a JSON line for each classifier and
draw. `alone` leaves out the two that use unlabelled rows.

The vectors are projected as calmix does it: centred, of unit length, 256 principal directions of the training vectors.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from draws import TRAIN, labelled

DIMENSIONS = 256
CS = [1, 3, 10, 30, 100, 300, 1000, 3000]
PEERS = ["logistic regression", "label spreading", "self-training"]


def projected(vectors, train=TRAIN):
    vectors = vectors.astype("float32")
    vectors -= vectors[:train].mean(axis=0)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    _, directions = np.linalg.eigh(vectors[:train].T @ vectors[:train])
    return vectors @ directions[:, ::-1][:, :DIMENSIONS]


def measures(probabilities, truth):
    """Error, NLL, ECE of 15 bins, and the mean error of the classes; no NLL if a row has no probability at all."""
    probabilities = probabilities.astype("float64")
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = [abs((confidence[bins == n] - right[bins == n]).sum()) for n in range(15)]
    own = probabilities[np.arange(len(truth)), truth]
    nll = float(-np.log(own).mean()) if (own > 0).all() else None
    balanced = np.mean([1 - right[truth == name].mean() for name in np.unique(truth)])
    return {"error": float(1 - right.mean()), "nll": nll, "ece": float(sum(gaps) / len(truth)), "balanced": float(balanced)}


def plain_regression(vectors, pool, kept, classes, weight):
    """LogisticRegression of scikit-learn (C = 10) on vectors that are centred by the pool and of unit length; returns its probabilities."""
    mean = vectors[pool].mean(axis=0)
    unit = lambda x: (x - mean) / np.maximum(np.linalg.norm(x - mean, axis=1, keepdims=True), 1e-12)
    model = LogisticRegression(C=10, class_weight=weight, max_iter=2000).fit(unit(vectors[kept]), classes[kept])
    return lambda rows: model.predict_proba(unit(vectors[rows]))


def main():
    features, out = map(Path, sys.argv[1:3])
    per_class, first, last = map(int, sys.argv[3:6])
    peers = ["logistic regression"] if "alone" in sys.argv[6:] else PEERS
    classes = np.load(features / "classes.npy")
    vectors = projected(np.load(features / "vectors.npy"))
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(row["features"], row["per_class"], row["draw"], row["peer"]): row for row in rows}
    for peer in peers:
        for draw in range(first, last + 1):
            if (features.name, per_class, draw, peer) in done:
                continue
            kept = labelled(classes, per_class, draw)
            partly = np.full(TRAIN, -1)
            partly[kept] = classes[kept]
            begin = time.monotonic()
            if peer == "logistic regression":
                folds = StratifiedKFold(min(10, per_class), shuffle=True, random_state=draw)
                search = GridSearchCV(LogisticRegression(max_iter=1000), {"C": CS}, scoring="neg_log_loss", cv=folds)
                model = search.fit(vectors[kept], classes[kept])
                row = {"C": model.best_params_["C"]}
            elif peer == "self-training":
                row = {"C": done[features.name, per_class, draw, "logistic regression"]["C"]}
                base = LogisticRegression(C=row["C"], max_iter=1000)
                model = SelfTrainingClassifier(base).fit(vectors[:TRAIN], partly)
            else:
                row = {}
                model = LabelSpreading(kernel="knn", n_neighbors=10).fit(vectors[:TRAIN], partly)
            seconds = time.monotonic() - begin
            row |= {"features": features.name, "per_class": per_class, "draw": draw, "peer": peer, "seconds": seconds}
            row |= measures(model.predict_proba(vectors[TRAIN:]), classes[TRAIN:])
            done[features.name, per_class, draw, peer] = row
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
