"""Forecasts of the learning curve beside the truth: `learning_curve.py VECTORS LABELS REPEATS`, with NumPy. `$CALMIX` is the program.

VECTORS is a folder of `vectors.py`; each repeat draws LABELS random labels in a pool of 5,000, trains, and reads from `result.json` the error now
and with more labels. The truth is the test error on 2,000 other rows, now and of a second run that has these labels and so many more.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CALMIX = os.environ.get("CALMIX", "calmix")


def calmix(*arguments, folder):
    return subprocess.run([CALMIX, *map(str, arguments)], cwd=folder, check=True, capture_output=True, text=True).stdout


def trained(folder, truth, labelled):
    """The learning curve of a run with these labels, and its error on the test rows."""
    with open(folder / "labels.csv", "w") as file:
        file.write("id,label\n")
        file.writelines(f"{row},{truth[row]}\n" for row in labelled)
    run = f"run-{len(labelled)}"
    calmix("train", "--features", "pool.npy", "--labels", "labels.csv", "--run-dir", run, "--quiet", "--set", "evaluate.bootstrap=0", folder=folder)
    lines = calmix("predict", run, "test.npy", "--format", "jsonl", folder=folder).splitlines()
    predicted = np.array([json.loads(line)["label"] for line in lines])
    error = np.mean(predicted != truth[-len(predicted) :].astype(str))
    return json.loads((folder / run / "result.json").read_text())["heads"].get("learning_curve"), error


def repeat(vectors, classes, labels, seed):
    order = np.random.default_rng(seed).permutation(len(vectors))[:7000]
    truth = classes[order]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.save(folder / "pool.npy", vectors[order[:5000]])
        np.save(folder / "test.npy", vectors[order[5000:]])
        curve, now = trained(folder, truth, range(labels))
        _, later = trained(folder, truth, range(labels + curve["more"]))
    covers = [curve[name]["low"] <= true <= curve[name]["high"] for name, true in [("now", now), ("later", later), ("gain", now - later)]]
    width = curve["later"]["high"] - curve["later"]["low"]
    return [now, later, *covers, width, curve["gain"]["low"] > 0, curve["gain"]["low"] > 0 and later >= now]


def main():
    source, labels, repeats = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    vectors, classes = np.load(source / "vectors.npy"), np.load(source / "classes.npy")
    found = 100 * np.mean([repeat(vectors, classes, labels, seed) for seed in range(repeats)], axis=0)
    print("| labels | error now | error later | now in interval | later in interval | gain in interval | width | told | told wrongly |")
    print(f"| {labels} | " + " | ".join(f"{value:.1f}" for value in found) + " |")


if __name__ == "__main__":
    main()
