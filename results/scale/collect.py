"""Writes a row of `runs.csv` for each finished run: `collect.py SWEEP SHARDS >> runs.csv`. SHARDS is `shuffled`, `sorted` or `none`."""

import csv
import json
import sys
import tomllib
from pathlib import Path

COLUMNS = ["sweep", "shards", "order", "groups", "lr", "seed", "error", "nll", "ece"]


def main():
    sweep, shards = Path(sys.argv[1]), sys.argv[2]
    out = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    for run in sorted((sweep / "runs").iterdir()):
        recipe = tomllib.loads((run / "recipe.toml").read_text())
        if not (run / "result.json").exists():
            continue
        result = json.loads((run / "result.json").read_text())
        metrics = next(seen["metrics"] for seen in result["evaluations"] if seen["split"] == "test")
        row = {"sweep": sweep.name.split("-")[0], "shards": shards, "order": recipe["dataset"].get("order", "samples")}
        row |= {"groups": recipe["train"]["groups"], "lr": recipe["optimiser"]["lr"], "seed": recipe["train"]["seed"]}
        row |= {name: f"{metrics[key]:.6g}" for name, key in [("error", "error"), ("nll", "nll"), ("ece", "ece_15")]}
        out.writerow(row)


if __name__ == "__main__":
    main()
