"""scikit-learn on the draws of `runs.py`: `peers.py FEATURES OUT PER_CLASS FIRST LAST`; a JSON line for each classifier and draw.

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
CS = [1, 3, 10, 30, 100, 300]


def projected(vectors):
    vectors = vectors.astype("float32")
    vectors -= vectors[:TRAIN].mean(axis=0)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    _, directions = np.linalg.eigh(vectors[:TRAIN].T @ vectors[:TRAIN])
    return vectors @ directions[:, ::-1][:, :DIMENSIONS]


def measures(probabilities, truth):
    """Error, NLL and ECE of 15 bins; no NLL if a row has no probability at all."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.minimum((confidence * 15).astype(int), 14)
    gaps = [abs((confidence[bins == n] - right[bins == n]).sum()) for n in range(15)]
    own = probabilities[np.arange(len(truth)), truth]
    nll = float(-np.log(own).mean()) if (own > 0).all() else None
    return {"error": float(1 - right.mean()), "nll": nll, "ece": sum(gaps) / len(truth)}


def main():
    features, out = map(Path, sys.argv[1:3])
    per_class, first, last = map(int, sys.argv[3:])
    classes = np.load(features / "classes.npy")
    vectors = projected(np.load(features / "vectors.npy"))
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(row["features"], row["per_class"], row["draw"], row["peer"]) for row in done}
    for draw in range(first, last + 1):
        rows = labelled(classes, per_class, draw)
        partly = np.full(TRAIN, -1)
        partly[rows] = classes[rows]
        best = None
        for peer in ["logistic regression", "self-training", "label spreading"]:
            if (features.name, per_class, draw, peer) in done and peer != "logistic regression":
                continue
            begin = time.monotonic()
            if peer == "logistic regression":
                folds = StratifiedKFold(min(10, per_class), shuffle=True, random_state=draw)
                model = GridSearchCV(LogisticRegression(max_iter=1000), {"C": CS}, scoring="neg_log_loss", cv=folds)
                model.fit(vectors[rows], classes[rows])
                best = model.best_params_["C"]
            elif peer == "self-training":
                model = SelfTrainingClassifier(LogisticRegression(C=best, max_iter=1000)).fit(vectors[:TRAIN], partly)
            else:
                model = LabelSpreading(kernel="knn", n_neighbors=10).fit(vectors[:TRAIN], partly)
            seconds = time.monotonic() - begin
            row = {"features": features.name, "per_class": per_class, "draw": draw, "peer": peer, "C": best}
            row |= measures(model.predict_proba(vectors[TRAIN:]), classes[TRAIN:]) | {"seconds": seconds}
            if (features.name, per_class, draw, peer) not in done:
                with out.open("a") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
