"""What weights of classes do to calibration: `class_weight.py FEATURES LABELS FIRST LAST RATIO...`; a row of a table for each ratio and
classifier, means over the draws FIRST to LAST.

FEATURES is a folder of `features.py`. Of each class the training rows are thinned out, so that the rarest has a RATIO-th of the most
frequent one. LABELS of these rows have their label: two per class, and the others at random. The test rows are thinned out in the
same proportions. Needs the package, NumPy and scikit-learn.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from calmix import CalmixClassifier

from draws import TRAIN, drawn_labels, long_tailed
from peers import measures, plain_regression

COVERAGE = 0.9


def softmax(logits):
    logits = np.c_[-logits, logits] / 2 if logits.ndim == 1 else logits
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def calmix(vectors, labels, test, truth, weight):
    classifier = CalmixClassifier(class_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(vectors, labels)
        members = classifier.predict_set(test, COVERAGE)
    before = measures(softmax(classifier.decision_function(test)), truth)
    after = measures(classifier.predict_proba(test), truth)
    after["nll before"], after["ece before"] = before["nll"], before["ece"]
    after["coverage"] = members[np.arange(len(truth)), truth].mean()
    after["set size"] = members.sum(axis=1).mean()
    return after


def main():
    features = Path(sys.argv[1])
    count, first, last, *ratios = map(int, sys.argv[2:])
    vectors = np.load(features / "vectors.npy").astype("float32")
    classes = np.load(features / "classes.npy")
    columns = ["error", "balanced", "nll before", "nll", "ece before", "ece", "coverage", "set size"]
    print("| ratio | classifier | weights | error, % | balanced error, % | NLL before | NLL | ECE before, % | ECE, % | coverage, % | set size |")
    print("|---" * (3 + len(columns)) + "|")
    for ratio in ratios:
        rows = {}
        for draw in range(first, last + 1):
            random = np.random.default_rng([draw, ratio, count])
            pool, test = (long_tailed(rows, classes, np.unique(classes), ratio, random, 2) for rows in np.split(np.arange(len(classes)), [TRAIN]))
            kept = drawn_labels(pool, classes, count, 2, random)
            labels = np.full(len(classes), -1)
            labels[kept] = classes[kept]
            for weight in [None, "balanced"]:
                found = calmix(vectors[pool], labels[pool], vectors[test], classes[test], weight)
                rows.setdefault(("calmix", weight), []).append(found)
                found = measures(plain_regression(vectors, pool, kept, classes, weight)(test), classes[test])
                found["nll before"], found["ece before"] = found["nll"], found["ece"]
                rows.setdefault(("logistic regression, C = 10", weight), []).append(found)
        for (name, weight), found in rows.items():
            means = [np.mean([row[column] for row in found]) if column in found[0] else np.nan for column in columns]
            texts = ["" if np.isnan(mean) else f"{mean:.3f}" if "nll" in column else f"{mean:.2f}" if column == "set size" else f"{100 * mean:.1f}" for column, mean in zip(columns, means)]
            print(f"| 1:{ratio} | {name} | {weight or 'none'} |", " | ".join(texts), "|", flush=True)


if __name__ == "__main__":
    main()
