"""The tables of BENCHMARKS.md on vectors: `table.py RUNS [PEERS]`, with SciPy; runs of `runs.py`, lines of `peers.py`.

The confirmed cells are those that did not choose EM's constants: all but CIFAR-10 on EfficientNet-Lite0. In each, a paired t test
of the difference in NLL between the kept head and logistic regression, both calibrated, and Holm's correction over the cells.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

FITTED = "cifar10"
TITLES = {"logistic-regression": "LR", "em": "EM", "balanced-em": "balanced EM", "lr-em": "LR + EM"}


def measured(head):
    """Error, NLL and ECE on test, before and after calibration."""
    seen = next(seen for seen in head["evaluations"] if seen["split"] == "test")
    raw = seen["metrics"]
    after = (seen.get("calibrated") or seen)["metrics"]
    return [100 * raw["error"], raw["nll"], 100 * raw["ece_15"], after["nll"], 100 * after["ece_15"]]


def show(values, digits):
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def holm(p_values):
    """Holm's adjusted p values."""
    order, adjusted, highest = np.argsort(p_values), np.empty(len(p_values)), 0.0
    for place, cell in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[cell]))
        adjusted[cell] = highest
    return adjusted


def main():
    cells = defaultdict(list)
    for path in sorted(Path(sys.argv[1]).glob("*/result.json")):
        name, per_class, _ = path.parent.name.rsplit("-", 2)
        heads = json.loads(path.read_text())["heads"]["candidates"]
        found = {head["name"]: measured(head) for head in heads}
        kept = next(head["name"] for head in heads if head["kept"])
        cells[name, int(per_class)].append((found, kept))
    for column, digits, title in [(0, 1, "error"), (1, 3, "NLL, raw"), (3, 3, "NLL"), (2, 1, "ECE, raw"), (4, 1, "ECE")]:
        print(f"\n| {title} | n | {' | '.join(TITLES.values())} | kept | which |\n|{'---|' * (len(TITLES) + 4)}")
        for (name, per_class), runs in sorted(cells.items()):
            row = [show([found[head][column] for found, _ in runs], digits) for head in TITLES]
            row.append(show([found[kept][column] for found, kept in runs], digits))
            row.append(", ".join(f"{TITLES[head]} {n}" for head, n in Counter(kept for _, kept in runs).most_common()))
            print(f"| {name}, {per_class} | {len(runs)} | {' | '.join(row)} |")
    print("\n| confirmed | n | error, kept − LR | NLL, kept − LR | greatest | p | p, Holm |\n|---|---|---|---|---|---|---|")
    differences = {}
    for cell, runs in sorted(cells.items()):
        pairs = [np.subtract(found[kept], found["logistic-regression"]) for found, kept in runs]
        if cell[0] != FITTED and len(pairs) > 1:
            differences[cell] = np.array(pairs)
    p_values = [stats.ttest_1samp(pairs[:, 3], 0.0).pvalue for pairs in differences.values()]
    for ((name, per_class), pairs), p, adjusted in zip(differences.items(), p_values, holm(p_values)):
        shown = f"{show(pairs[:, 0], 1)} | {show(pairs[:, 3], 3)} | {pairs[:, 3].max():+.3f}"
        print(f"| {name}, {per_class} | {len(pairs)} | {shown} | {p:.1e} | {adjusted:.1e} |")
    if len(sys.argv) > 2:
        peers = defaultdict(list)
        for line in Path(sys.argv[2]).read_text().splitlines():
            row = json.loads(line)
            peers[row["features"], row["per_class"], row["peer"]].append(row)
        print("\n| cell, peer | n | error | NLL | ECE | s |\n|---|---|---|---|---|---|")
        for (name, per_class, peer), rows in sorted(peers.items()):
            nll = [row["nll"] for row in rows]
            nll = "undefined" if None in nll else show(nll, 3)
            error, ece = (show([100 * row[key] for row in rows], 1) for key in ["error", "ece"])
            seconds = np.mean([row["seconds"] for row in rows])
            print(f"| {name}, {per_class}, {peer} | {len(rows)} | {error} | {nll} | {ece} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
