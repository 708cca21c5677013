"""A line for each classifier and draw as CSV: `collect.py FEATURES RUNS PEERS > results/vectors/runs.csv`.

FEATURES is a folder of `features.py`, RUNS the folder of `runs.py` and PEERS the lines of `peers.py`. ECE has 15 bins. The lines
of calmix are after the calibration that it applies, and say what its 90% prediction sets and its abstention for 90% precision did
on the test vectors: how many sets contain the true class, their mean size, the share of vectors that are answered, and how many
of these answers are right. `$CALMIX` is the program, `calmix` by default.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from draws import TRAIN
from table import read_peers, read_runs

COLUMNS = ["features", "labels", "draw", "classifier", "error", "nll", "ece", "coverage", "set_size", "answered", "right"]


def guarantees(run, test):
    """What prediction sets and abstention of a run did on test vectors."""
    command = [os.environ.get("CALMIX", "calmix"), "evaluate", run, "--on", test / "test.npy", "--labels", test / "test.csv"]
    printed = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout
    found = json.loads(printed)
    sets, answers = found["sets"], found["answers"]
    return [sets["coverage"], sets["size"], answers["share"], answers["precision"]]


def main():
    features, folder, peers = map(Path, sys.argv[1:4])
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(COLUMNS)
    with tempfile.TemporaryDirectory() as test:
        test = Path(test)
        np.save(test / "test.npy", np.load(features / "vectors.npy")[TRAIN:])
        labels = np.load(features / "classes.npy")[TRAIN:]
        (test / "test.csv").write_text("label\n" + "".join(f"{label}\n" for label in labels))
        for (name, per_class), runs in read_runs(folder).items():
            for draw, (found, kept) in sorted(runs.items()):
                for classifier, head in [("calmix", kept), ("calmix, labels alone", "logistic-regression")]:
                    error, _, _, nll, ece = found[head]
                    row = [name, per_class, draw, classifier, *(f"{number:.4f}" for number in (error, nll, ece))]
                    run = folder / f"{name}-{per_class}-{draw}"
                    of_test = guarantees(run, test) if classifier == "calmix" else [None] * 4
                    out.writerow(row + ["" if value is None else f"{value:.4f}" for value in of_test])
    for (name, per_class, peer), rows in read_peers(peers).items():
        for draw, row in sorted(rows.items()):
            numbers = ["" if row[metric] is None else f"{row[metric]:.4f}" for metric in ["error", "nll", "ece"]]
            out.writerow([name, per_class, draw, peer, *numbers, "", "", "", ""])


if __name__ == "__main__":
    main()
