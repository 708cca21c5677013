"""What weights of classes do to calibration: `class_weight.py FEATURES TRAIN LABELS FIRST LAST RATIO...`; a row of a table for each ratio and
classifier, means over the draws FIRST to LAST.

FEATURES is a folder with `vectors.npy`, TRAIN training vectors first, and `classes.npy`. Of each class the training rows
are thinned out, so that the rarest has a RATIO-th of the most frequent one. LABELS of these rows have their label: two per class, and
the others at random. The test rows are thinned out in the same proportions. Needs the package, NumPy and scikit-learn.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from calmix import CalmixClassifier, calibration
from sklearn.linear_model import LogisticRegression

COVERAGE = 0.9


def long_tailed(rows, classes, ratio, random):
    """Rows whose classes fall from one to the next, in an order of classes that does not depend on the draw."""
    names = np.unique(classes)
    found = []
    for place, name in enumerate(names):
        own = rows[classes[rows] == name]
        share = ratio ** (-place / (len(names) - 1))
        found.append(random.choice(own, max(2, round(share * len(own))), replace=False))
    return np.concatenate(found)


def with_labels(rows, classes, count, random):
    """The rows that keep their label: two of each class, the others at random, as they come."""
    first = np.concatenate([random.choice(rows[classes[rows] == name], 2, replace=False) for name in np.unique(classes)])
    others = np.setdiff1d(rows, first)
    return np.concatenate([first, random.choice(others, count - len(first), replace=False)])


def softmax(logits):
    logits = np.c_[-logits, logits] / 2 if logits.ndim == 1 else logits
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def measures(probabilities, truth):
    predicted = probabilities.argmax(axis=1)
    by_class = [np.mean(predicted[truth == name] != name) for name in np.unique(truth)]
    probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
    return {
        "error": 100 * np.mean(predicted != truth),
        "balanced error": 100 * np.mean(by_class),
        "NLL": calibration.nll(truth, probabilities),
        "ECE": 100 * calibration.ece(truth, probabilities),
    }


def calmix(vectors, labels, test, truth, weight):
    classifier = CalmixClassifier(class_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(vectors, labels)
        members = classifier.predict_set(test, COVERAGE)
    before = measures(softmax(classifier.decision_function(test)), truth)
    after = measures(classifier.predict_proba(test), truth)
    after["NLL before"], after["ECE before"] = before["NLL"], before["ECE"]
    after["coverage"] = 100 * members[np.arange(len(truth)), truth].mean()
    after["set size"] = members.sum(axis=1).mean()
    return after


def unit(vectors, mean):
    vectors = vectors - mean
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def main():
    features = Path(sys.argv[1])
    train, count, first, last, *ratios = map(int, sys.argv[2:])
    vectors = np.load(features / "vectors.npy").astype("float32")
    classes = np.load(features / "classes.npy")
    columns = ["error", "balanced error", "NLL before", "NLL", "ECE before", "ECE", "coverage", "set size"]
    print("| ratio | classifier | weights |", " | ".join(columns), "|")
    print("|---" * (3 + len(columns)) + "|")
    for ratio in ratios:
        rows = {}
        for draw in range(first, last + 1):
            random = np.random.default_rng([draw, ratio, count])
            pool = np.sort(long_tailed(np.arange(train), classes, ratio, random))
            test = np.sort(long_tailed(np.arange(train, len(classes)), classes, ratio, random))
            kept = with_labels(pool, classes, count, random)
            labels = np.full(len(classes), -1)
            labels[kept] = classes[kept]
            for weight in [None, "balanced"]:
                found = calmix(vectors[pool], labels[pool], vectors[test], classes[test], weight)
                rows.setdefault(("calmix", weight), []).append(found)
                mean = vectors[pool].mean(axis=0)
                regression = LogisticRegression(C=10, class_weight=weight, max_iter=2000)
                regression.fit(unit(vectors[kept], mean), classes[kept])
                found = measures(regression.predict_proba(unit(vectors[test], mean)), classes[test])
                found["NLL before"], found["ECE before"] = found["NLL"], found["ECE"]
                rows.setdefault(("logistic regression, C = 10", weight), []).append(found)
        for (name, weight), found in rows.items():
            means = [np.mean([row[column] for row in found]) if column in found[0] else np.nan for column in columns]
            texts = ["" if np.isnan(mean) else f"{mean:.3f}" if "NLL" in column else f"{mean:.1f}" for column, mean in zip(columns, means)]
            print(f"| 1:{ratio} | {name} | {weight or 'none'} |", " | ".join(texts), "|", flush=True)


if __name__ == "__main__":
    main()
