"""Runs of `calmix train --features` on draws of the labels: `runs.py FEATURES RUNS PER_CLASS FIRST LAST`.

FEATURES is a folder of `features.py`. A run that RUNS already has is left out. `$CALMIX` is the program, `calmix` by default.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from draws import TRAIN, labelled


def main():
    features, runs = map(Path, sys.argv[1:3])
    per_class, first, last = map(int, sys.argv[3:])
    classes = np.load(features / "classes.npy")
    for draw in range(first, last + 1):
        run = runs / f"{features.name}-{per_class}-{draw}"
        if (run / "result.json").exists():
            continue
        shown = np.full(len(classes), "", dtype=object)
        kept = np.concatenate([labelled(classes, per_class, draw), np.arange(TRAIN, len(classes))])
        shown[kept] = classes[kept]
        lines = [f"{label},{'train' if row < TRAIN else 'test'}\n" for row, label in enumerate(shown)]
        labels = runs / f"{run.name}.csv"
        runs.mkdir(parents=True, exist_ok=True)
        labels.write_text("label,split\n" + "".join(lines))
        command = [os.environ.get("CALMIX", "calmix"), "train", "--features", features / "vectors.npy"]
        options = ["--labels", labels, "--seed", str(draw), "--run-dir", run, "--threads", "2"]
        subprocess.run([*command, *options, "--set", "evaluate.bootstrap=0"], check=True)


if __name__ == "__main__":
    main()
