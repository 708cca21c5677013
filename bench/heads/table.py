"""The tables of docs/study/heads.md on the choice of head, on the temperature and on the default: `table.py choice|rows|default RUNS`, of
`runs.py`; `default` also takes the runs of `seconds`, if RUNS has them.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy.stats


def on_test(evaluations):
    """Error, NLL, ECE before calibration, then NLL and ECE after it."""
    seen = next(seen for seen in evaluations if seen["split"] == "test")
    raw, after = seen["metrics"], (seen.get("calibrated") or seen)["metrics"]
    return np.array([100 * raw["error"], raw["nll"], 100 * raw["ece_15"], after["nll"], 100 * after["ece_15"]])


def cells(runs):
    found = defaultdict(list)
    for path in sorted(Path(runs).glob("*/result.json")):
        run = json.loads(path.read_text())
        run["summary"] = json.loads((path.parent / "summary.json").read_text())
        found[path.parent.name.rsplit("-", 1)[0]].append(run)
    return found


def show(values, digits):
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def chosen(run):
    """Which of (recipe, labels alone) each rule keeps: 0 or 1."""
    recipe, alone = run["heads"]["candidates"]
    difference = run["heads"]["nll_difference"]
    error = (difference["high"] - difference["low"]) / 2 / scipy.stats.t.ppf(0.975, difference["n"] - 1)
    distance = difference["estimate"] / error
    many = run["summary"]["unlabelled"] >= 10 * run["summary"]["labelled"]
    return {
        "the rule": int(distance > (2 if many else 1)),
        "one standard error": int(distance > 1),
        "two standard errors": int(distance > 2),
        "always the recipe's": 0,
        "always labels alone": 1,
        "lower NLL": int(alone["nll"] < recipe["nll"]),
    }


def choice(found):
    rules = ["the rule", "one standard error", "two standard errors", "always the recipe's", "always labels alone", "lower NLL"]
    print("| cell | n | error, recipe / alone | NLL, recipe / alone | alone kept | " + " | ".join(rules) + " |")
    print("|" + "---|" * (len(rules) + 5))
    temperature = []
    for cell, runs in sorted(found.items()):
        both = np.array([[on_test(head["evaluations"]) for head in run["heads"]["candidates"]] for run in runs])
        kept = [chosen(run) for run in runs]
        error, nll = both[:, :, 0], both[:, :, 3]
        losses = []
        for rule in rules:
            pick = [picks[rule] for picks in kept]
            rows = np.arange(len(runs))
            # The better head is the one with the lower NLL on test.
            lost, points = nll[rows, pick] - nll.min(axis=1), error[rows, pick] - error[rows, nll.argmin(axis=1)]
            losses.append(f"{show(lost, 3)} ({points.mean():+.1f})")
        alone = sum(picks["the rule"] for picks in kept)
        errors = " / ".join(show(error[:, head], 1) for head in range(2))
        nlls = " / ".join(show(nll[:, head], 3) for head in range(2))
        print(f"| {cell} | {len(runs)} | {errors} | {nlls} | {alone} | {' | '.join(losses)} |")
        pick = [picks["the rule"] for picks in kept]
        model = both[np.arange(len(runs)), pick]
        row = [show(model[:, 3] - model[:, 1], 3)] + [show(both[:, h, 3] - both[:, h, 1], 3) for h in range(2)]
        temperature.append(f"| {cell} | {len(runs)} | {' | '.join(row)} | {show(model[:, 2], 1)} | {show(model[:, 4], 1)} |")
    print("\n| cell | n | NLL at T − raw: kept | recipe | labels alone | ECE raw, kept | ECE at T, kept |\n|" + "---|" * 7)
    print("\n".join(temperature))


def rows(found):
    print("| cell | n | error | NLL | ECE | NLL at T | ECE at T | NLL at T − NLL | T applied |\n|" + "---|" * 9)
    for cell, runs in sorted(found.items()):
        of = np.array([on_test(run["evaluations"]) for run in runs])
        digits = [1, 3, 1, 3, 1]
        row = [show(of[:, column], digits[column]) for column in range(5)]
        change = of[:, 3] - of[:, 1]
        applied = int((np.abs(change) > 0).sum())
        print(f"| {cell} | {len(runs)} | {' | '.join(row)} | {change.mean():+.4f} ± {change.std(ddof=1):.4f} | {applied} |")


def default(found):
    print("| images | labels per class | n | error: views | clean | NLL: views | clean | clean − views | seconds: views | clean |")
    print("|" + "---|" * 10)
    for cell in sorted(cell for cell in found if cell.startswith("default-") and cell.endswith("-views")):
        _, images, labels, _ = cell.split("-")
        clean = cell.replace("views", "clean")
        both = [np.array([on_test(run["evaluations"]) for run in found[name]]) for name in [cell, clean]]
        assert len(both[0]) == len(both[1]), f"{cell}: {len(both[0])} and {len(both[1])} runs"
        error, nll = ([of[:, column] for of in both] for column in (0, 3))
        change = nll[1] - nll[0]
        interval = scipy.stats.t.ppf(0.975, len(change) - 1) * change.std(ddof=1) / len(change) ** 0.5
        took = [seconds(name.replace("default", "seconds")) for name in [cell, clean]]
        print(
            f"| {images} | {labels} | {len(change)} | {show(error[0], 1)} | {show(error[1], 1)} | {show(nll[0], 3)} | {show(nll[1], 3)} "
            f"| {change.mean():+.3f} ± {interval:.3f} | {took[0]} | {took[1]} |"
        )


def seconds(name):
    """The median time of the runs of a cell with features of their own; empty if there are none."""
    times = [float(path.read_text()) for path in Path(sys.argv[2]).glob(f"{name}-*.seconds")]
    return f"{np.median(times):.0f}" if times else ""


if __name__ == "__main__":
    {"choice": choice, "rows": rows, "default": default}[sys.argv[1]](cells(sys.argv[2]))
