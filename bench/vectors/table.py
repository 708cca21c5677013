"""The tables of docs/study/heads.md on vectors: `table.py RUNS [PEERS]`, with SciPy; runs of `runs.py`, lines of `peers.py`.

The confirmed cells are those that did not choose EM's constants: all but CIFAR-10 on EfficientNet-Lite0. In each, a paired t test
of the difference in NLL between the kept head and logistic regression, both calibrated, and Holm's correction over the cells.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

TITLES = {"logistic-regression": "LR", "em": "EM", "balanced-em": "balanced EM", "lr-em": "LR + EM"}


def is_confirmed(name):
    """Whether the features of a cell had no part in the choice of constants."""
    return not name.startswith("cifar10") or name.startswith("cifar100")


def measured(head):
    """Error, NLL and ECE on test, before and after calibration."""
    seen = next(seen for seen in head["evaluations"] if seen["split"] == "test")
    raw = seen["metrics"]
    after = (seen.get("calibrated") or seen)["metrics"]
    return [100 * raw["error"], raw["nll"], 100 * raw["ece_15"], after["nll"], 100 * after["ece_15"]]


def show(values, digits):
    deviation = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{deviation}"


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


def show_heads(cells):
    for column, digits, title in [(0, 1, "error"), (1, 3, "NLL, raw"), (3, 3, "NLL"), (2, 1, "ECE, raw"), (4, 1, "ECE")]:
        print(f"\n| {title} | n | {' | '.join(TITLES.values())} | kept | which |\n|{'---|' * (len(TITLES) + 4)}")
        for (name, per_class), runs in cells.items():
            row = [show([found[head][column] for found, _ in runs.values()], digits) for head in TITLES]
            row.append(show([found[kept][column] for found, kept in runs.values()], digits))
            kept = Counter(kept for _, kept in runs.values()).most_common()
            row.append(", ".join(f"{TITLES[head]} {n}" for head, n in kept))
            print(f"| {name}, {per_class} | {len(runs)} | {' | '.join(row)} |")


def show_tests(title, differences):
    """A paired test for each cell; `differences` are rows of error and NLL."""
    differences = {cell: np.array(pairs) for cell, pairs in differences.items() if len(pairs) > 1}
    print(f"\n| {title} | n | error | NLL | greatest | p | p, Holm |\n|---|---|---|---|---|---|---|")
    p_values = [stats.ttest_1samp(pairs[:, 1], 0.0).pvalue for pairs in differences.values()]
    for ((name, per_class), pairs), p, adjusted in zip(differences.items(), p_values, holm(p_values)):
        shown = f"{show(pairs[:, 0], 1)} | {show(pairs[:, 1], 3)} | {pairs[:, 1].max():+.3f}"
        print(f"| {name}, {per_class} | {len(pairs)} | {shown} | {p:.1e} | {adjusted:.1e} |")


def main():
    cells = read_runs(Path(sys.argv[1]))
    show_heads(cells)
    confirmed = {cell: runs for cell, runs in cells.items() if is_confirmed(cell[0])}
    others = {cell: runs for cell, runs in cells.items() if not is_confirmed(cell[0])}
    for title, chosen in [("confirmed: kept − LR", confirmed), ("constants chosen here: kept − LR", others)]:
        pairs = {}
        for cell, runs in chosen.items():
            of_draws = [np.subtract(found[kept], found["logistic-regression"]) for found, kept in runs.values()]
            pairs[cell] = [difference[[0, 3]] for difference in of_draws]
        show_tests(title, pairs)
    if len(sys.argv) <= 2:
        return
    peers = read_peers(Path(sys.argv[2]))
    pairs = defaultdict(list)
    for cell, runs in confirmed.items():
        rows = peers.get((*cell, "logistic regression"), {})
        for draw in sorted(runs.keys() & rows.keys()):
            found, kept = runs[draw]
            peer = rows[draw]
            pairs[cell].append([found[kept][0] - 100 * peer["error"], found[kept][3] - peer["nll"]])
    show_tests("confirmed: kept − scikit-learn's logistic regression", pairs)
    print("\n| cell, peer | n | error | NLL | ECE | s |\n|---|---|---|---|---|---|")
    for (name, per_class, peer), rows in peers.items():
        nll = [row["nll"] for row in rows.values()]
        nll = "undefined" if None in nll else show(nll, 3)
        error, ece = (show([100 * row[key] for row in rows.values()], 1) for key in ["error", "ece"])
        seconds = np.mean([row["seconds"] for row in rows.values()])
        print(f"| {name}, {per_class}, {peer} | {len(rows)} | {error} | {nll} | {ece} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
