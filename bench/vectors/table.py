"""Rows of `vectors.csv`, `vectors-differences.csv` and `vectors-scikit-learn.csv` in `results/recorded`: `table.py RUNS OUT [PEERS]`.

RUNS are of `runs.py`, PEERS has the lines of `peers.py`, OUT is a folder. The confirmed cells are those that did not choose EM's
constants: all but CIFAR-10 on EfficientNet-Lite0. In each, a paired t test of the difference in NLL between the kept head and
logistic regression, both calibrated, and Holm's correction over the cells.
"""

import csv
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

TITLES = {"logistic-regression": "LR", "em": "EM", "balanced-em": "balanced EM", "lr-em": "LR + EM", "neighbours": "neighbours", "lr-neighbours": "LR + neighbours"}
# Columns of `measured`.
ERROR, NLL_RAW, ECE_RAW, NLL, ECE = range(5)


def is_confirmed(name):
    """Whether the features of a cell had no part in the choice of constants."""
    return not name.startswith("cifar10") or name.startswith("cifar100")


def measured(head):
    """Error, then NLL and ECE on test before calibration and after it."""
    seen = next(seen for seen in head["evaluations"] if seen["split"] == "test")
    raw = seen["metrics"]
    after = (seen.get("calibrated") or seen)["metrics"]
    return np.array([raw["error"], raw["nll"], raw["ece_15"], after["nll"], after["ece_15"]])


def holm(p_values):
    """Holm's adjusted p values."""
    order, adjusted, highest = np.argsort(p_values), np.empty(len(p_values)), 0.0
    for place, cell in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[cell]))
        adjusted[cell] = highest
    return adjusted


def read_runs(folder):
    """By cell and draw: the measures of each head, and the name of the kept one."""
    cells = defaultdict(dict)
    for path in sorted(folder.glob("*/result.json")):
        name, per_class, draw = path.parent.name.rsplit("-", 2)
        heads = json.loads(path.read_text())["heads"]["candidates"]
        found = {head["name"]: measured(head) for head in heads}
        kept = next(head["name"] for head in heads if head["kept"])
        cells[name, int(per_class)][int(draw)] = (found, kept)
    return dict(sorted(cells.items()))


def read_peers(path):
    """By cell and peer, then by draw: a line of `peers.py`."""
    peers = defaultdict(dict)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        peers[row["features"], row["per_class"], row["peer"]][row["draw"]] = row
    return dict(sorted(peers.items()))


def heads(cells):
    """Means of each head and of the kept one."""
    for (name, per_class), runs in cells.items():
        of = lambda head, column: np.mean([found[head or kept][column] for found, kept in runs.values()])
        row = {"features": name, "labels": per_class, "draws": len(runs)}
        row |= {f"error_{head.replace('logistic-regression', 'lr').replace('-', '_')}": f"{of(head, ERROR):.3f}" for head in TITLES}
        row["error_kept"] = f"{of(None, ERROR):.3f}"
        for metric, column in [("nll", NLL), ("ece", ECE)]:
            row |= {f"{metric}_lr": f"{of('logistic-regression', column):.3f}", f"{metric}_kept": f"{of(None, column):.3f}"}
        row["kept"] = ", ".join(f"{TITLES[head]} {n}" for head, n in Counter(kept for _, kept in runs.values()).most_common())
        change = [found[kept][NLL] - found["logistic-regression"][NLL] for found, kept in runs.values()]
        yield row | {"nll_difference": f"{np.mean(change):.3f}", "nll_difference_largest": f"{max(change):.3f}"}


def tests(against, pairs):
    """A paired test for each cell; `pairs` are differences of error and NLL."""
    pairs = {cell: np.array(differences) for cell, differences in pairs.items() if len(differences) > 1}
    p_values = [stats.ttest_1samp(differences[:, 1], 0.0).pvalue for differences in pairs.values()]
    for ((name, per_class), differences), p, adjusted in zip(pairs.items(), p_values, holm(p_values)):
        row = {"features": name, "labels": per_class, "against": against, "draws": len(differences)}
        for column, metric in enumerate(["error", "nll"]):
            row[f"{metric}_difference"] = f"{differences[:, column].mean():.3f}"
            row[f"{metric}_difference_sd"] = f"{differences[:, column].std(ddof=1):.3f}"
        yield row | {"nll_difference_largest": f"{differences[:, 1].max():.3f}", "p": f"{p:.1e}", "p_holm": f"{adjusted:.1e}"}


def against_logistic_regression(cells):
    """Differences between the kept head and logistic regression, with both before calibration."""
    of = lambda runs, head, column: np.array([found[head or kept][column] for found, kept in runs.values()])
    lr = "logistic-regression"
    pairs = {cell: np.transpose([of(runs, None, one) - of(runs, lr, one) for one in (ERROR, NLL)]) for cell, runs in cells.items()}
    for row in tests("logistic regression", pairs):
        runs = cells[row["features"], row["labels"]]
        for metric, column in [("nll", NLL_RAW), ("ece", ECE_RAW)]:
            for name, head in [("lr", lr), ("kept", None)]:
                values = of(runs, head, column)
                row |= {f"{metric}_raw_{name}": f"{values.mean():.3f}", f"{metric}_raw_{name}_sd": f"{values.std(ddof=1):.3f}"}
        yield row


def against_scikit_learn(cells, peers):
    """Differences between the kept head and scikit-learn's logistic regression, which is not calibrated."""
    pairs = defaultdict(list)
    for cell, runs in cells.items():
        lines = peers.get((*cell, "logistic regression"), {})
        for draw in sorted(runs.keys() & lines.keys()):
            found, kept = runs[draw]
            pairs[cell].append([found[kept][ERROR] - lines[draw]["error"], found[kept][NLL] - lines[draw]["nll"]])
    return tests("scikit-learn LogisticRegression", pairs)


def scikit_learn(peers):
    """Means of the classifiers of scikit-learn; no NLL if a true class has no probability in some draw."""
    for (name, per_class, peer), lines in peers.items():
        of = lambda key: [line[key] for line in lines.values()]
        nll = "" if None in of("nll") else f"{np.mean(of('nll')):.3f}"
        row = {"features": name, "labels": per_class, "draws": len(lines), "classifier": peer, "error": f"{np.mean(of('error')):.3f}"}
        yield row | {"nll": nll, "ece": f"{np.mean(of('ece')):.3f}", "seconds": f"{np.mean(of('seconds')):.1f}"}


def write(path, rows):
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, names, restval="", lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def main():
    cells, out = read_runs(Path(sys.argv[1])), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    confirmed = {cell: runs for cell, runs in cells.items() if is_confirmed(cell[0])}
    differences = list(against_logistic_regression(confirmed))
    if len(sys.argv) > 3:
        peers = read_peers(Path(sys.argv[3]))
        differences += against_scikit_learn(confirmed, peers)
        write(out / "vectors-scikit-learn.csv", scikit_learn(peers))
    write(out / "vectors.csv", heads(cells))
    write(out / "vectors-differences.csv", differences)


if __name__ == "__main__":
    main()
