"""Heads on long-tailed classes: `long_tailed.py RUNS LABELS FIRST LAST RATIO[,RATIO...] FEATURES...`; a row of a table for each cell and
classifier, means over the draws FIRST to LAST.

FEATURES are folders of `features.py`, RUNS a folder for runs; one that is there is not trained again. Of each class the training rows are
thinned out, so that the rarest has a RATIO-th of the most frequent one, in an order of classes that each draw has of its own. LABELS of these
rows have their label: `even` as many of each class, `drawn` one of each and the others at random. The test rows are thinned out in the same
proportions; NLL, ECE and error are on these, the balanced error of the last column on all test rows. `$CALMIX` is the program. Needs NumPy, safetensors and scikit-learn.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from draws import TRAIN, drawn_labels, long_tailed
from peers import measures, plain_regression
from runs import trained

COLUMNS = ["nll", "ece", "error", "balanced", "balanced, all"]


def candidates(run, vectors, classes):
    """The measures of each head, of the chosen one on all test rows too, and its name."""
    found = {}
    for head in json.loads((run / "result.json").read_text())["heads"]["candidates"]:
        seen = next(seen for seen in head["evaluations"] if seen["split"] == "test")
        after = (seen.get("calibrated") or seen)["metrics"]
        found[head["name"]] = {"nll": after["nll"], "ece": after["ece_15"], "error": after["error"], "balanced": after.get("balanced_error")}
        if head["kept"]:
            kept = head["name"]
    head = load_file(run / "head.safetensors")
    rows = vectors[TRAIN:] - head["mean"]
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    predicted = (rows @ head["weight"].T + head["bias"]).argmax(axis=1)
    truth = classes[TRAIN:]
    found["chosen"] = found[kept] | {"balanced, all": np.mean([(predicted[truth == name] != name).mean() for name in np.unique(truth)])}
    return found, kept


def peers(vectors, classes, pool, kept, test):
    found = {}
    for weight in [None, "balanced"]:
        probabilities = plain_regression(vectors, pool, kept, classes, weight)
        everything = measures(probabilities(np.arange(TRAIN, len(classes))), classes[TRAIN:])
        name = f"LogisticRegression{', balanced' if weight else ''}"
        found[name] = measures(probabilities(test), classes[test]) | {"balanced, all": everything["balanced"]}
    return found


def cell(runs, features, vectors, classes, ratio, how, count, draws):
    rows, chosen = defaultdict(list), Counter()
    for draw in draws:
        random = np.random.default_rng([draw, ratio, count])
        order = random.permutation(np.unique(classes))
        least = count // len(order) if how == "even" else 1
        pool, test = (long_tailed(rows, classes, order, ratio, random, least) for rows in np.split(np.arange(len(classes)), [TRAIN]))
        kept = drawn_labels(pool, classes, count, least, random)
        labels = np.full(len(classes), "", dtype=object)
        labels[kept] = classes[kept]
        run = runs / f"{features}-{ratio}-{how}-{count}-{draw}"
        trained(run, vectors[np.concatenate([pool, test])], labels[pool], classes[test], draw)
        found, name = candidates(run, vectors, classes)
        chosen[name] += 1
        for classifier, row in (found | peers(vectors, classes, pool, kept, test)).items():
            rows[classifier].append(row)
    return rows, chosen


def main():
    runs, count, first, last = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    print("| features | ratio | labels | classifier | NLL | ECE, % | error, % | balanced error, % | of all test rows, % | chosen |")
    print("|---" * 10 + "|")
    for folder in map(Path, sys.argv[6:]):
        vectors = np.load(folder / "vectors.npy").astype("float32")
        classes = np.load(folder / "classes.npy")
        for ratio in map(int, sys.argv[5].split(",")):
            for how in ["even", "drawn"]:
                rows, chosen = cell(runs, folder.name, vectors, classes, ratio, how, count, range(first, last + 1))
                for name, found in rows.items():
                    values = [[row.get(column) for row in found] for column in COLUMNS]
                    means = [np.nan if None in of else np.mean(of) for of in values]
                    texts = ["" if np.isnan(mean) else f"{100 * mean:.1f}" if place else f"{mean:.3f}" for place, mean in enumerate(means)]
                    print(f"| {folder.name} | 1:{ratio} | {how} | {name} |", " | ".join(texts), f"| {chosen.get(name, '')} |", flush=True)


if __name__ == "__main__":
    main()
