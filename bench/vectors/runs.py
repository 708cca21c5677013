"""Runs of `calmix train --features` on draws of the labels: `runs.py FEATURES RUNS PER_CLASS FIRST LAST [UNLABELLED]`.

FEATURES is a folder of `features.py`. A run that RUNS already has is left out. UNLABELLED is `imbalanced`, which makes the classes
of the unlabelled rows 10:1, or the folder of another dataset, whose rows become a fifth of the unlabelled ones. `$CALMIX` is the
program, `calmix` by default.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from draws import TRAIN, imbalanced, labelled, with_foreign


def main():
    features, runs = map(Path, sys.argv[1:3])
    per_class, first, last = map(int, sys.argv[3:6])
    unlabelled = sys.argv[6] if len(sys.argv) > 6 else ""
    name = "-".join(filter(None, [features.name, unlabelled and Path(unlabelled).name]))
    classes = np.load(features / "classes.npy")
    vectors = np.load(features / "vectors.npy")
    runs.mkdir(parents=True, exist_ok=True)
    for draw in range(first, last + 1):
        run = runs / f"{name}-{per_class}-{draw}"
        if (run / "result.json").exists():
            continue
        kept = labelled(classes, per_class, draw)
        rows = np.arange(TRAIN)
        foreign = vectors[:0]
        if unlabelled == "imbalanced":
            rows = imbalanced(classes, kept, draw)
        elif unlabelled:
            rows, others = with_foreign(classes, kept, draw)
            foreign = np.load(Path(unlabelled) / "vectors.npy", mmap_mode="r")[others]
        labels = np.full(TRAIN, "", dtype=object)
        labels[kept] = classes[kept]
        lines = [f"{label},train\n" for label in labels[rows]] + [",train\n"] * len(foreign)
        lines += [f"{label},test\n" for label in classes[TRAIN:]]
        table, file = (runs / f"{run.name}{ending}" for ending in [".csv", ".npy"])
        table.write_text("label,split\n" + "".join(lines))
        np.save(file, np.concatenate([vectors[rows], foreign, vectors[TRAIN:]]))
        command = [os.environ.get("CALMIX", "calmix"), "train", "--features", file, "--labels", table]
        options = ["--seed", str(draw), "--run-dir", run, "--threads", "1", "--set", "evaluate.bootstrap=0"]
        subprocess.run([*command, *options], check=True)
        file.unlink()


if __name__ == "__main__":
    main()
