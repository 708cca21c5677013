"""Guarantees after rounds of labelling: `rounds.py VECTORS POOL REPEATS`, with NumPy. `$CALMIX` is the program.

VECTORS is a folder of `vectors.py`; each repeat draws POOL rows as the pool, and 2,000 others as test rows. Four rounds ask for 50 labels each:
first typical samples, then those of which the model is least sure, three in ten at random. The answers are true. Of the last run, the table has the
coverage of 90% sets, the share of runs whose answers are right less often than 90%, and the error that calmix expects beside the true one: from the
random labels alone, as calmix does, and from all labels, as if they were not marked.
"""

import csv
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


def train(folder, labels):
    subprocess.run(["rm", "-rf", folder / "run"], check=True)
    calmix("train", "--features", "pool.npy", "--labels", labels, "--run-dir", "run", "--quiet", "--set", "evaluate.bootstrap=0",
           folder=folder)


def measured(folder, classes):
    """Coverage, share of answers, whether they miss the precision, and the expected and the true error."""
    lines = calmix("predict", "run", "test.npy", "--sets", "lac", "--coverage", 0.9, "--precision", 0.9, "--format", "jsonl", folder=folder)
    rows = [json.loads(line) for line in lines.splitlines()]
    truth = [str(label) for label in classes]
    covered = np.mean([true in row["set"] for row, true in zip(rows, truth)])
    right = np.array([row["label"] == true for row, true in zip(rows, truth)])
    answered = np.array([not row["abstain"] for row in rows])
    missed = bool(answered.any() and right[answered].mean() < 0.9)
    result = json.loads((folder / "run/result.json").read_text())
    expected = next(seen["metrics"]["error"] for seen in result["evaluations"] if seen["split"] == "out-of-fold")
    return [covered, answered.mean(), missed, expected, 1 - right.mean()]


def repeat(vectors, classes, pool, seed):
    order = np.random.default_rng(seed).permutation(len(vectors))
    chosen, test = order[:pool], order[pool : pool + 2000]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.save(folder / "pool.npy", vectors[chosen])
        np.save(folder / "test.npy", vectors[test])
        for number in range(4):
            subject = ["pool.npy"] if number == 0 else ["run", "--choose", "margin"]
            calmix("review", *subject, "--count", 50, "--seed", seed, "--force", "--quiet", folder=folder)
            with open(folder / "review.csv") as file:
                rows = list(csv.DictReader(file))
            with open(folder / "review.csv", "w") as file:
                file.write("file,label,drawn\n")
                file.writelines(f"{row['file']},{classes[chosen[int(row['file'])]]},{row['drawn']}\n" for row in rows)
            calmix("label", "pool.npy", "review.csv", "--labels", "labels.csv", folder=folder)
            train(folder, "labels.csv")
        marked = measured(folder, classes[test])
        with open(folder / "labels.csv") as file:
            rows = [row for row in csv.DictReader(file) if row["label"]]
        with open(folder / "unmarked.csv", "w") as file:
            file.write("id,label\n")
            file.writelines(f"{row['id']},{row['label']}\n" for row in rows)
        train(folder, "unmarked.csv")
        return marked, measured(folder, classes[test]), sum(row["drawn"] == "random" for row in rows)


def main():
    source, pool, repeats = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    vectors, classes = np.load(source / "vectors.npy"), np.load(source / "classes.npy")
    found = [repeat(vectors, classes, pool, seed) for seed in range(repeats)]
    print(f"random labels: {np.mean([random for *_, random in found]):.1f} of 200")
    print("| guarantees from | coverage of 90% sets | answers | runs that miss 90% precision | expected error | true error |\n|---|---|---|---|---|---|")
    for name, which in [("random labels", 0), ("all labels", 1)]:
        values = 100 * np.array([seen[which] for seen in found], dtype=float)
        mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(repeats)
        cells = [f"{mean[0]:.1f} ± {error[0]:.1f}", f"{mean[1]:.0f}%", f"{mean[2]:.0f}%", f"{mean[3]:.1f} ± {error[3]:.1f}", f"{mean[4]:.1f} ± {error[4]:.1f}"]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
