"""Several sets of features beside each of them: `sets.py TRAIN FIRST LAST LABELS[,LABELS...] FEATURES FEATURES...`; a row of a table for each
number of labels per class and set, means over the draws FIRST to LAST.

Each FEATURES is a folder with `vectors.npy`, TRAIN training vectors first, and `classes.npy`, on the same images. Beside the joined sets is the set that is best out of fold, and the mean
of the logits of a head for each set, at the temperatures of their calibrators. Needs the package and NumPy.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from calmix import CalmixClassifier, calibration
from draws import labelled

COVERAGE = 0.9


def fitted(vectors, labels):
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = CalmixClassifier(settings={"labels.unlabelled_count": 0}).fit(vectors, labels)
    return classifier, time.monotonic() - begin


def nll_of(classifier):
    return next(head.nll for head in classifier.candidates_ if head.kept)


def measured(classifier, test, truth, seconds):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = classifier.predict_set(test, COVERAGE)
    found = of_probabilities(classifier.predict_proba(test), truth)
    return [*found, 100 * members[np.arange(len(truth)), truth].mean(), seconds, nll_of(classifier)]


def of_probabilities(probabilities, truth):
    probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
    return [100 * calibration.error(truth, probabilities), calibration.nll(truth, probabilities)]


def main():
    train, first, last = map(int, sys.argv[1:4])
    folders = [Path(name) for name in sys.argv[5:]]
    classes = np.load(folders[0] / "classes.npy")
    tables = [np.load(folder / "vectors.npy").astype("float32") for folder in folders]
    truth = classes[train:]
    print("| labels per class | features | error | NLL | coverage | seconds | NLL out of fold |\n|---|---|---|---|---|---|---|")
    for per_class in map(int, sys.argv[4].split(",")):
        rows = {}
        for draw in range(first, last + 1):
            kept = labelled(classes[:train], per_class, draw)
            labels = np.full(train, -1)
            labels[kept] = classes[kept]
            alone = []
            for folder, table in zip(folders, tables):
                classifier, seconds = fitted(table[:train], labels)
                alone.append((classifier, measured(classifier, table[train:], truth, seconds)))
                rows.setdefault(folder.name, []).append(alone[-1][1])
            rows.setdefault("best out of fold", []).append(min((row for _, row in alone), key=lambda row: row[-1]))
            logs = sum(np.log(np.maximum(head.predict_proba(table[train:]), 1e-30)) for (head, _), table in zip(alone, tables))
            mean = np.exp(logs / len(alone))
            rows.setdefault("mean of calibrated log-probabilities", []).append([*of_probabilities(mean, truth), *[np.nan] * 3])
            classifier, seconds = fitted([table[:train] for table in tables], labels)
            joined = measured(classifier, [table[train:] for table in tables], truth, seconds)
            rows.setdefault("joined", []).append(joined)
        for name, found in rows.items():
            error, nll, coverage, seconds, out_of_fold = np.mean(found, axis=0)
            spread = np.std([row[0] for row in found], ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0
            print(f"| {per_class} | {name} | {error:.1f} ± {spread:.1f} | {nll:.3f} | {coverage:.1f} | {seconds:.1f} | {out_of_fold:.3f} |", flush=True)


if __name__ == "__main__":
    main()
