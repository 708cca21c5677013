"""Rows of `results/recorded/choice.csv`, `heads.csv` or `default.csv` from the runs of `runs.py`: `table.py choice|rows|default RUNS`.

`default` also gives the median time of the runs of `seconds`, if RUNS has them.
"""

import csv
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import scipy.stats

# Columns of `on_test`.
ERROR, NLL, ECE, NLL_AT_T, ECE_AT_T = range(5)
MIXUPS = {"none": "none", "random": "random", "calibratemix": "CalibrateMix", "calibratemix-soft": "CalibrateMix, soft"}
TITLES = {"logistic-regression": "LR", "em": "EM", "balanced-em": "balanced EM", "lr-em": "LR + EM", "neighbours": "neighbours", "lr-neighbours": "LR + neighbours"}


def on_test(evaluations):
    """Error, NLL and ECE before calibration, then NLL and ECE after it."""
    seen = next(seen for seen in evaluations if seen["split"] == "test")
    raw, after = seen["metrics"], (seen.get("calibrated") or seen)["metrics"]
    return np.array([raw["error"], raw["nll"], raw["ece_15"], after["nll"], after["ece_15"]])


def read(runs):
    """The results of the runs of each cell, by seed."""
    found = defaultdict(dict)
    for path in sorted(Path(runs).glob("*/result.json")):
        run = json.loads(path.read_text())
        run["summary"] = json.loads((path.parent / "summary.json").read_text())
        cell, seed = path.parent.name.rsplit("-", 1)
        found[cell][int(seed)] = run
    return found


def columns(name, values, digits, spread="sd"):
    """Mean and standard deviation as two columns."""
    return {name: f"{np.mean(values):.{digits}f}", f"{name}_{spread}": f"{np.std(values, ddof=1):.{digits}f}"}


def first_columns(runs):
    return {"runs": len(runs), "seeds": f"{min(runs)}-{max(runs)}"}


def chosen(run):
    """Which of (recipe, labels alone) each rule keeps: 0 or 1."""
    recipe, alone = run["heads"]["candidates"]
    difference = run["heads"]["nll_difference"]
    error = (difference["high"] - difference["low"]) / 2 / scipy.stats.t.ppf(0.975, difference["n"] - 1)
    distance = difference["estimate"] / error
    many = run["summary"]["unlabelled"] >= 10 * run["summary"]["labelled"]
    return {
        "rule": int(distance > (2 if many else 1)),
        "one_error": int(distance > 1),
        "two_errors": int(distance > 2),
        "recipe": 0,
        "alone": 1,
        "lower_nll": int(alone["nll"] < recipe["nll"]),
    }


def choice(found):
    """The loss of each rule against the better head of each run, which is the one with the lower NLL on test."""
    for cell, runs in sorted(found.items()):
        both = np.array([[on_test(head["evaluations"]) for head in run["heads"]["candidates"]] for run in runs.values()])
        kept = [chosen(run) for run in runs.values()]
        error, nll = both[:, :, ERROR], both[:, :, NLL_AT_T]
        data, labels = cell.rsplit("-", 1)
        row = {"data": data, "labels": labels} | first_columns(runs)
        for metric, values, digits in [("error", error, 3), ("nll", nll, 3)]:
            row |= columns(f"{metric}_recipe", values[:, 0], digits) | columns(f"{metric}_alone", values[:, 1], digits)
        row["alone_kept"] = sum(picks["rule"] for picks in kept)
        every = np.arange(len(runs))
        for rule in kept[0]:
            pick = [picks[rule] for picks in kept]
            row[f"nll_loss_{rule}"] = f"{(nll[every, pick] - nll.min(axis=1)).mean():.3f}"
            row[f"error_loss_{rule}"] = f"{(error[every, pick] - error[every, nll.argmin(axis=1)]).mean():.3f}"
        model = both[every, [picks["rule"] for picks in kept]]
        changes = {"": model, "_recipe": both[:, 0], "_alone": both[:, 1]}
        yield row | {f"nll_change_at_t{head}": f"{(of[:, NLL_AT_T] - of[:, NLL]).mean():.3f}" for head, of in changes.items()}


def rows(found):
    """Every base with every mixup."""
    for cell, runs in sorted(found.items()):
        base, rest = cell.split("-", 1)
        mixup, labels = rest.rsplit("-", 1)
        of = np.array([on_test(run["evaluations"]) for run in runs.values()])
        row = {"head": "linear", "labels": labels, "base": base, "mixup": MIXUPS[mixup]} | first_columns(runs) | {"spread": "sd"}
        for name, column in [("error", ERROR), ("nll", NLL), ("ece", ECE), ("nll_at_t", NLL_AT_T), ("ece_at_t", ECE_AT_T)]:
            row |= columns(name, of[:, column], 3, "spread")
        change = of[:, NLL_AT_T] - of[:, NLL]
        yield row | columns("nll_change", change, 4, "spread") | {"t_applied": int((np.abs(change) > 0).sum())}


def default(found):
    """Heads on five views beside heads on one."""
    for cell in sorted(cell for cell in found if cell.startswith("default-") and cell.endswith("-views")):
        _, data, labels, _ = cell.split("-")
        five, one = found[cell], found[cell.replace("views", "clean")]
        assert five.keys() == one.keys(), f"{cell}: the seeds {sorted(five)} and {sorted(one)}"
        both = [np.array([on_test(runs[seed]["evaluations"]) for seed in sorted(runs)]) for runs in (five, one)]
        row = {"data": data, "labels": labels} | first_columns(five)
        for metric, column in [("error", ERROR), ("nll", NLL_AT_T)]:
            for views, of in zip(["five_views", "one_view"], both):
                row |= columns(f"{metric}_{views}", of[:, column], 3)
        change = both[1][:, NLL_AT_T] - both[0][:, NLL_AT_T]
        half = scipy.stats.t.ppf(0.975, len(change) - 1) * change.std(ddof=1) / len(change) ** 0.5
        row |= {"nll_difference": f"{change.mean():.3f}", "nll_difference_half95": f"{half:.3f}", "kept": kept(one)}
        for views, name in [("five_views", cell), ("one_view", cell.replace("views", "clean"))]:
            row[f"seconds_{views}"] = seconds(name.replace("default", "seconds"))
        yield row


def kept(runs):
    """How often each head was kept."""
    names = Counter(head["name"] for run in runs.values() for head in run["heads"]["candidates"] if head["kept"])
    return ", ".join(f"{TITLES[name]} {count}" for name, count in names.most_common())


def seconds(name):
    """The median time of the runs of a cell with features of their own; empty if there are none."""
    times = [float(path.read_text()) for path in Path(sys.argv[2]).glob(f"{name}-*.seconds")]
    return f"{np.median(times):.0f}" if times else ""


def main():
    found = list({"choice": choice, "rows": rows, "default": default}[sys.argv[1]](read(sys.argv[2])))
    out = csv.DictWriter(sys.stdout, found[0], lineterminator="\n")
    out.writeheader()
    out.writerows(found)


if __name__ == "__main__":
    main()
