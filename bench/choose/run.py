"""calmix beside six tools: `run.py WORK OUT.csv FIRST LAST [DATASET...]`; a line for each tool and draw.

A draw divides the rows into training and test and draws the labels: 2, 5 and 20 per class; all other training rows are
unlabelled. A line that OUT has already is not made again. WORK keeps the vectors. Set OMP_NUM_THREADS=1.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

sys.path.append(str(Path(__file__).parent.parent / "vectors"))
from classifiers import CLASSIFIERS, Draw, predicted  # noqa: E402  (draws and peers are beside this folder)
from datasets import DATASETS, dataset  # noqa: E402
from draws import labelled  # noqa: E402
from peers import measures, projected  # noqa: E402

COUNTS = [2, 5, 20]
COLUMNS = ["dataset", "labels", "draw", "classifier", "error", "nll", "ece", "coverage", "set_size", "seconds"]


def drawn(vectors, classes, is_table, per_class, seed):
    """The rows in a random order, a third of them for the test, and the classes of the test."""
    order = np.random.default_rng([seed, 7]).permutation(len(classes))
    vectors, classes = vectors[order].astype("float32"), classes[order]
    train = len(classes) * 2 // 3
    labels = np.full(train, -1)
    kept = labelled(classes[:train], per_class, seed)
    labels[kept] = classes[kept]
    if is_table:
        scaled = StandardScaler().fit(vectors[:train]).transform(vectors)
        return Draw(scaled, scaled, labels, seed), classes[train:]
    return Draw(vectors, projected(vectors, train), labels, seed), classes[train:]


def line(name, draw, truth):
    begin = time.process_time()
    probabilities, sets = predicted(name, draw)
    found = {"seconds": time.process_time() - begin}
    if probabilities is not None:
        found |= measures(probabilities, truth)
    if sets is not None:
        found |= {"coverage": sets[np.arange(len(truth)), truth].mean(), "set_size": sets.sum(axis=1).mean()}
    return {column: f"{value:.4f}" for column, value in found.items() if value is not None}


def main():
    work, out = map(Path, sys.argv[1:3])
    first, last = map(int, sys.argv[3:5])
    chosen = sys.argv[5:] or list(DATASETS)
    rows = list(csv.DictReader(out.open())) if out.exists() else []
    done = {tuple(row[column] for column in COLUMNS[:4]) for row in rows}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        if not rows:
            writer.writeheader()
        for seed in range(first, last + 1):
            for name in chosen:
                vectors, classes, is_table = dataset(work, name)
                for per_class in COUNTS:
                    draw, truth = None, None
                    for classifier in CLASSIFIERS:
                        key = (name, str(per_class), str(seed), classifier)
                        if key in done:
                            continue
                        if draw is None:
                            draw, truth = drawn(vectors, classes, is_table, per_class, seed)
                        writer.writerow(dict(zip(COLUMNS, key)) | line(classifier, draw, truth))
                        file.flush()


if __name__ == "__main__":
    main()
