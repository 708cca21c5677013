"""Rounds against all rows at once: `rounds.py FEATURES RUNS FIRST LAST >> rounds.csv`, with NumPy; `$CALMIX` is the program.

FEATURES is a folder of `bench/vectors/features.py`. Each draw has 4 labels per class and trains on 2,000 random unlabelled rows
(round 0), predicts all 10,000 in 50 shards, and trains on 200 rows of each predicted class: the most confident ones, or
random ones among those with a confidence of at least 0.6, and a second round of the latter. `all` trains on all rows at once.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "bench" / "vectors"))
from draws import TRAIN, labelled

PER_CLASS, FIRST_ROWS, PICKED, SHARDS, CONFIDENT = 4, 2_000, 200, 50, 0.6
COLUMNS = ["data", "seed", "unlabelled", "rows", "error", "nll", "ece"]
CALMIX = os.environ.get("CALMIX", "calmix")
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def trained(features, run, rows, kept, draw):
    """Trains on some rows; says the error, NLL and ECE of the calibrated model on the test rows."""
    classes, vectors = (np.load(features / f"{name}.npy", mmap_mode="r") for name in ["classes", "vectors"])
    if not (run / "result.json").exists():
        rows = np.union1d(rows, kept)
        lines = [f"{classes[row] if row in kept else ''},train\n" for row in rows]
        lines += [f"{label},test\n" for label in classes[TRAIN:]]
        table, file = run.with_suffix(".csv"), run.with_suffix(".npy")
        table.write_text("label,split\n" + "".join(lines))
        np.save(file, np.concatenate([vectors[rows], vectors[TRAIN:]]))
        options = ["--seed", str(draw), "--run-dir", run, "--threads", "1", "--set", "evaluate.bootstrap=0"]
        subprocess.run([CALMIX, "train", "--features", file, "--labels", table, *options], check=True, **QUIET)
        file.unlink()
    result = json.loads((run / "result.json").read_text())
    seen = next(seen for seen in result["evaluations"] if seen["split"] == "test")
    metrics = (seen.get("calibrated") or seen)["metrics"]
    return {"error": metrics["error"], "nll": metrics["nll"], "ece": metrics["ece_15"]}


def predicted(features, run):
    """The label and the confidence of each training row, predicted shard by shard."""
    labels, confidences = [], []
    file = run.with_name("all.npy")
    if not file.exists():
        np.save(file, np.load(features / "vectors.npy", mmap_mode="r")[:TRAIN])
    for shard in range(1, SHARDS + 1):
        out = run / "shards" / f"{shard}.csv"
        out.parent.mkdir(exist_ok=True)
        written = out.with_name(f"{shard}-{shard}-of-{SHARDS}.csv")
        if not written.exists():
            command = [CALMIX, "predict", run, file, "--shard", f"{shard}/{SHARDS}", "--out", out, "--threads", "1"]
            subprocess.run(command, check=True, **QUIET)
        with written.open() as lines:
            for line in csv.DictReader(lines):
                labels.append(line["label"])
                confidences.append(float(line["confidence"]))
    return np.array(labels), np.array(confidences)


def picked(labels, confidences, kind, draw):
    """The same number of rows of each predicted class."""
    random = np.random.default_rng([draw, 3])
    chosen = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        if kind == "confident":
            rows = rows[np.argsort(-confidences[rows], kind="stable")]
        else:
            rows = random.permutation(rows[confidences[rows] >= CONFIDENT])
        chosen.append(rows[:PICKED])
    return np.concatenate(chosen)


def main():
    features, runs = map(Path, sys.argv[1:3])
    first, last = map(int, sys.argv[3:5])
    classes = np.load(features / "classes.npy")
    out = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    for draw in range(first, last + 1):
        kept = labelled(classes, PER_CLASS, draw)
        folder = runs / f"{features.name}-{draw}"
        folder.mkdir(parents=True, exist_ok=True)

        def train(name, rows):
            numbers = trained(features, folder / name, rows, kept, draw)
            shown = {key: f"{value:.6g}" for key, value in numbers.items()}
            out.writerow({"data": features.name, "seed": draw, "unlabelled": name, "rows": len(rows)} | shown)
            sys.stdout.flush()

        train("all", np.arange(TRAIN))
        train("random", np.random.default_rng([draw, 4]).choice(TRAIN, FIRST_ROWS, replace=False))
        first_round = predicted(features, folder / "random")
        train("confident", picked(*first_round, "confident", draw))
        train("above", picked(*first_round, "above", draw))
        train("above-twice", picked(*predicted(features, folder / "above"), "above", draw))


if __name__ == "__main__":
    main()
