"""The error of pseudo-labels by decile of APM: `deciles.py SWEEP TABLE >> deciles.csv`, with NumPy and safetensors.

Takes the margins of the unlabelled samples from the last checkpoint of each run with guided pairs; TABLE is the prepared folder of
the dataset. The pseudo-label of a sample is the class with its largest APM. Samples that were never drawn are left out.
"""

import csv
import sys
import tomllib
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

RECORD = [("offset", "<u8"), ("part", "<u4"), ("length", "<u4"), ("checksum", "<u4"), ("label", "<u4")]
COLUMNS = ["labels", "seed", "base", "weight", "samples", *(f"error_{decile}" for decile in range(1, 11))]


def main():
    sweep, table = map(Path, sys.argv[1:3])
    truth = np.fromfile(table / "samples.bin", RECORD)["label"]
    out = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    for run in sorted((sweep / "runs").iterdir()):
        recipe = tomllib.loads((run / "recipe.toml").read_text())
        mixup = recipe["method"]["mixup"]
        if mixup["pairing"] != "calibratemix" or not (run / "result.json").exists():
            continue
        samples = load_file(max((run / "checkpoints").iterdir()) / "samples-0.safetensors")
        drawn = samples["apm.visits"] > 0
        apm = samples["apm.values"][drawn]
        wrong = apm.argmax(axis=1) != truth[: len(drawn)][drawn]
        order = np.argsort(apm.max(axis=1), kind="stable")
        errors = [f"{wrong[rows].mean():.6g}" for rows in np.array_split(order, 10)]
        row = {"labels": recipe["labels"]["count"], "seed": recipe["train"]["seed"], "base": recipe["method"]["base"]}
        row |= {"weight": mixup["pair_weight"], "samples": len(apm)}
        out.writerow(row | {f"error_{decile}": error for decile, error in enumerate(errors, 1)})


if __name__ == "__main__":
    main()
