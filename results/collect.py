"""Writes a row of `runs.csv` for each run of a sweep: `collect.py SWEEP [GUARANTEES] >> runs.csv`.

GUARANTEES is what `head_guarantees --csv SWEEP/runs/*` prints for heads (an example of bench/). A run that failed has a row without numbers.
"""

import csv
import json
import statistics
import sys
import tomllib
from pathlib import Path

COLUMNS = ["sweep", "data", "backbone", "head", "labels", "seed", "base", "arm", "error", "nll", "ece", "squared_error", "gap"]
COLUMNS += ["temperature", "nll_at_t", "ece_at_t", "squared_error_at_t", "gap_at_t", "impurity", "easy", "hard", "mixtures"]
COLUMNS += ["coverage", "set_size", "answered_90", "right_90", "answered_95", "right_95", "failed"]
GUARANTEES = COLUMNS[-7:-1]


def arm(recipe):
    """The name of what varies: the pairing, the target and the weight of mixtures."""
    method, mixup = recipe["method"], recipe["method"]["mixup"]
    if recipe["network"]["weak_views"] == 0:
        return "clean"
    if method["smoothing"] != "none":
        return "smoothing"
    if mixup["pairing"] == "none":
        return "none"
    if mixup["lambda"] == "fixed" and mixup["gamma"] == 1.0:
        return "labels twice"
    pairing = {"calibratemix": "guided"}.get(mixup["pairing"], mixup["pairing"])
    weighted = ", weighted" if mixup["pair_weight"] == "base" else ""
    unit = ", unit length" if mixup["unit_length"] else ""
    return f"{pairing} {mixup['pseudo_target']}{weighted}{unit}"


def impurities(run):
    """The shares of wrong pseudo-labels over the second half of the steps: of the weight, easy and hard halves, mixtures."""
    steps = [json.loads(line) for line in (run / "events.jsonl").open() if line.startswith('{"event":"step"')]
    late = [step for step in steps if 2 * step["step"] > steps[-1]["step"]]
    shares = [{"all": step.get("impurity")} | (step.get("impurity_of") or {}) for step in late]
    columns = [[of.get(key) for of in shares] for key in ["all", "easy", "hard", "mixtures"]]
    means = [[number for number in column if number is not None] for column in columns]
    return [statistics.fmean(column) if column else None for column in means]


def heads(run):
    """Each head that the run trained: its name, whether it became the model, and its evaluation on test."""
    result = json.loads((run / "result.json").read_text())
    alone = {"name": "recipe", "kept": True, "evaluations": result["evaluations"]}
    for head in (result.get("heads") or {}).get("candidates") or [alone]:
        yield head["name"], head["kept"], next(seen for seen in head["evaluations"] if seen["split"] == "test")


def row(sweep, run, guarantees):
    recipe = tomllib.loads((run / "recipe.toml").read_text())
    network, labels = recipe["network"], recipe["labels"]
    same = {
        "sweep": sweep.name,
        "data": recipe["dataset"]["source"],
        "backbone": network["name"],
        "head": network["head"],
        "labels": labels["count"],
        "seed": recipe["train"]["seed"],
        "base": recipe["method"]["base"],
        "arm": arm(recipe),
    }
    if not (run / "result.json").exists():
        yield same | {"failed": "yes"}
        return
    for name, is_kept, seen in heads(run):
        raw, after = seen["metrics"], (seen.get("calibrated") or seen)
        numbers = {
            "error": raw["error"],
            "nll": raw["nll"],
            "ece": raw["ece_15"],
            "squared_error": raw["debiased_squared_error"],
            "gap": raw["confidence_gap"],
            "temperature": after.get("temperature"),
            "nll_at_t": after["metrics"]["nll"],
            "ece_at_t": after["metrics"]["ece_15"],
            "squared_error_at_t": after["metrics"]["debiased_squared_error"],
            "gap_at_t": after["metrics"]["confidence_gap"],
        }
        if same["arm"] == "clean":
            numbers |= {"base": name}
        else:
            numbers |= dict(zip(["impurity", "easy", "hard", "mixtures"], impurities(run)))
        # Only the model has guarantees.
        yield same | numbers | (guarantees.get(run.name, {}) if is_kept else {})


def short(value):
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else value


def main():
    sweep = Path(sys.argv[1])
    guarantees = {}
    for file in sys.argv[2:]:
        with open(file) as lines:
            guarantees |= {line["run"]: {key: line[key] for key in GUARANTEES} for line in csv.DictReader(lines)}
    out = csv.DictWriter(sys.stdout, COLUMNS, restval="", lineterminator="\n")
    for run in sorted((sweep / "runs").iterdir()):
        for line in row(sweep, run, guarantees):
            out.writerow({key: short(value) for key, value in line.items()})


if __name__ == "__main__":
    main()
