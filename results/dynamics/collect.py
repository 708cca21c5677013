"""Adds the finished runs of a sweep to `runs.csv`, `curves.csv` and `bins.csv` beside this file: `collect.py SWEEP`.

A run that was there before is replaced, so that a sweep can be collected block by block.
"""

import csv
import json
import statistics
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
KEY = ["data", "backbone", "head", "labels", "base", "arm", "steps", "seed"]
RUNS = [*KEY, "visits", "visits_before_mixing", "error", "nll", "ece", "gap", "temperature", "nll_at_t", "ece_at_t"]
RUNS += ["impurity", "easy", "hard", "mixtures", "auroc_average", "auroc_current", "failed"]
CURVES = [*KEY, "step", "ece", "error", "auroc_average", "auroc_current"]
BINS = [*KEY, "scaled", "bin", "count", "confidence", "accuracy"]
# Curves have at most this many points, each the mean of consecutive events.
POINTS = 20


def arm(recipe):
    """The name of what varies: pairs and targets of mixtures, or a control."""
    method, mixup = recipe["method"], recipe["method"]["mixup"]
    if mixup["pairing"] == "none":
        if method["smoothing"] != "none":
            return "smoothing"
        usual = 0.0 if recipe["network"]["train"] == "head" else 5e-4
        decay = recipe["optimiser"]["weight_decay"]
        return "none" if decay == usual else f"decay {decay:g}"
    pairing = {"calibratemix": "guided"}.get(mixup["pairing"], mixup["pairing"])
    if pairing == "guided" and mixup["guidance"]["averaging"] == "exponential":
        pairing = "current"
    return f"{pairing} {mixup['pseudo_target']}"


def key(recipe):
    network = recipe["network"]
    return {
        "data": recipe["dataset"]["source"],
        "backbone": network["name"],
        "head": network["head"] if network["train"] == "head" else "",
        "labels": recipe["labels"]["count"],
        "base": recipe["method"]["base"],
        "arm": arm(recipe),
        "steps": recipe["train"]["steps"],
        "seed": recipe["train"]["seed"],
    }


def late_means(steps):
    """Means over the second half of the steps: wrong pseudo-labels and AUROC."""
    late = [step for step in steps if 2 * step["step"] > steps[-1]["step"]]
    found = {}
    for name, at in [("easy", "easy"), ("hard", "hard"), ("mixtures", "mixtures")]:
        found[name] = mean((step.get("impurity_of") or {}).get(at) for step in late)
    found["impurity"] = mean(step.get("impurity") for step in late)
    for name in ["average", "current"]:
        found[f"auroc_{name}"] = mean((step.get("margin_auroc") or {}).get(name) for step in late)
    return found


def mean(numbers):
    known = [number for number in numbers if number is not None]
    return statistics.fmean(known) if known else None


def read(run):
    """The row of a run, the points of its curves, and its bins."""
    recipe = tomllib.loads((run / "recipe.toml").read_text())
    of = key(recipe)
    if not (run / "result.json").exists():
        return of | {"failed": "yes"}, [], []
    result = json.loads((run / "result.json").read_text())
    events = [json.loads(line) for line in (run / "events.jsonl").open()]
    steps = [event for event in events if event["event"] == "step"]
    tests = [event for event in events if event["event"] == "evaluation" and (event["split"], event["model"]) == ("test", "ema")]
    last = tests[-1]
    scaled = last.get("calibrated") or last
    metrics, after = last["metrics"], scaled["metrics"]
    visits = result.get("visits") or {}
    row = of | late_means(steps) | {
        "visits": visits.get("all"),
        "visits_before_mixing": visits.get("before_mixing"),
        "error": metrics["error"],
        "nll": metrics["nll"],
        "ece": metrics["ece_15"],
        "gap": metrics["confidence_gap"],
        "temperature": scaled.get("temperature"),
        "nll_at_t": after["nll"],
        "ece_at_t": after["ece_15"],
    }
    return row, curves(of, steps, tests), bins(of, last, scaled)


def curves(of, steps, tests):
    found = []
    if len(tests) > 1:
        found += [of | {"step": one["step"], "ece": one["metrics"]["ece_15"], "error": one["metrics"]["error"]} for one in tests]
    # By the margin of the last visit alone, both are the same.
    ranked = [step for step in steps if step.get("margin_auroc") and not of["arm"].startswith("current")]
    size = -(-len(ranked) // POINTS) or 1
    for first in range(0, len(ranked), size):
        part = ranked[first : first + size]
        numbers = {f"auroc_{name}": mean(step["margin_auroc"][name] for step in part) for name in ["average", "current"]}
        found.append(of | {"step": part[-1]["step"]} | numbers)
    return found


def bins(of, raw, scaled):
    """The bins of a reliability diagram, before and after the temperature; only where the figure needs them."""
    if of["labels"] != 25 or of["base"] != "softmatch" or of["arm"] not in ("none", "random hard", "guided hard"):
        return []
    found = []
    for name, evaluation in [("no", raw), ("yes", scaled)]:
        for number, one in enumerate(evaluation["bins"]):
            found.append(of | {"scaled": name, "bin": number} | {key: one[key] for key in ["count", "confidence", "accuracy"]})
    return found


def shown(value):
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def merge(file, columns, found):
    """Replaces the rows of the collected runs in a file, and sorts it."""
    path = HERE / file
    lines = list(csv.DictReader(path.open())) if path.exists() else []
    rows = [{name: shown(row.get(name)) for name in columns} for row in found]
    identity = lambda row: tuple(row[name] for name in KEY)
    collected = {identity(row) for row in rows}
    rows += [line for line in lines if identity(line) not in collected]
    number = lambda text: (0, float(text), "") if text.replace(".", "").isdigit() else (1, 0.0, text)
    rows.sort(key=lambda row: [number(row[name]) for name in columns[: columns.index("seed") + 3]])
    with path.open("w") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    rows, points, bars = [], [], []
    for run in sorted((Path(sys.argv[1]) / "runs").iterdir()):
        is_failed = (run.parent.parent / "failed" / f"{run.name}.json").exists()
        if not (run / "result.json").exists() and not is_failed:
            continue
        row, curve, of_bins = read(run)
        rows.append(row)
        points += curve
        bars += of_bins
    merge("runs.csv", RUNS, rows)
    merge("curves.csv", CURVES, points)
    merge("bins.csv", BINS, bars)


if __name__ == "__main__":
    main()
