"""First labels, typical against random ones: `first_labels.py VECTORS POOL DRAWS`, with NumPy. `$CALMIX` is the program.

VECTORS is a folder of `vectors.py`. The first POOL rows are the pool, the others (at most 5,000) the test rows. For 10, 20 and 40 labels,
DRAWS reviews choose the labels without random rows, and as many are drawn at random. Each trains a run; the table has the mean test error of
balanced EM, of logistic regression and of the head that calmix keeps, each with its standard error, and the number of classes without a label.
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
COUNTS = [10, 20, 40]


def calmix(*arguments, folder):
    return subprocess.run([CALMIX, *map(str, arguments)], cwd=folder, check=True, capture_output=True, text=True).stdout


def typical(folder, count, seed):
    calmix("review", "pool.npy", "--count", count, "--random", 0, "--seed", seed, "--force", "--quiet", folder=folder)
    with open(folder / "review.csv") as file:
        return [int(row["file"]) for row in csv.DictReader(file)]


def errors(folder, rows, classes, pool):
    """The test errors of the heads by name, and of the kept one."""
    with open(folder / "labels.csv", "w") as file:
        file.write("id,label,split\n")
        file.writelines(f"{row},{classes[row]},train\n" for row in rows)
        file.writelines(f"{row},{classes[row]},test\n" for row in range(pool, len(classes)))
    subprocess.run(["rm", "-rf", folder / "run"], check=True)
    calmix("train", "--features", "all.npy", "--labels", "labels.csv", "--run-dir", "run", "--quiet",
           "--set", "labels.validation=0", "--set", "evaluate.bootstrap=0", folder=folder)
    result = json.loads((folder / "run/result.json").read_text())
    test = lambda evaluations: next(seen["metrics"]["error"] for seen in evaluations if seen["split"] == "test")
    found = {head["name"]: test(head["evaluations"]) for head in result["heads"]["candidates"]}
    found["kept"] = test(result["evaluations"])
    return found


def main():
    source, pool, draws = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    vectors, classes = np.load(source / "vectors.npy"), np.load(source / "classes.npy")
    pool = min(pool, len(vectors) - 500)
    vectors, classes = vectors[: pool + 5000], classes[: pool + 5000]
    present = len(np.unique(classes))
    print("| labels | rows | balanced EM | logistic regression | kept head | classes missing |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.save(folder / "all.npy", vectors)
        np.save(folder / "pool.npy", vectors[:pool])
        for count in COUNTS:
            for kind in ["random", "typical"]:
                seen = []
                for seed in range(draws):
                    rows = typical(folder, count, seed) if kind == "typical" else np.random.default_rng(seed).choice(pool, count, False)
                    found = errors(folder, rows, classes, pool)
                    seen.append([100 * found[name] for name in ["balanced-em", "logistic-regression", "kept"]]
                                + [present - len(np.unique(classes[rows]))])
                mean = np.mean(seen, axis=0)
                error = np.std(seen, axis=0, ddof=1) / np.sqrt(draws)
                cells = [f"{a:.1f} ± {b:.1f}" for a, b in zip(mean[:3], error[:3])] + [f"{mean[3]:.2f}"]
                print(f"| {count} | {kind} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
