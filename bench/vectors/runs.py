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


def trained(run, vectors, labels, truth, draw):
    """Trains on vectors with these labels, empty for those without one; the other vectors are test vectors of these classes."""
    if (run / "result.json").exists():
        return
    run.parent.mkdir(parents=True, exist_ok=True)
    table, file = (run.parent / f"{run.name}{ending}" for ending in [".csv", ".npy"])
    lines = [f"{label},train\n" for label in labels] + [f"{label},test\n" for label in truth]
    table.write_text("label,split\n" + "".join(lines))
    np.save(file, vectors)
    command = [os.environ.get("CALMIX", "calmix"), "train", "--features", file, "--labels", table]
    options = ["--seed", str(draw), "--run-dir", run, "--threads", "1", "--set", "evaluate.bootstrap=0"]
    subprocess.run([*command, *options, "--quiet"], check=True, stdout=sys.stderr)
    file.unlink()


def main():
    features, runs = map(Path, sys.argv[1:3])
    per_class, first, last = map(int, sys.argv[3:6])
    unlabelled = sys.argv[6] if len(sys.argv) > 6 else ""
    name = "-".join(filter(None, [features.name, unlabelled and Path(unlabelled).name]))
    classes = np.load(features / "classes.npy")
    vectors = np.load(features / "vectors.npy")
    for draw in range(first, last + 1):
        run = runs / f"{name}-{per_class}-{draw}"
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
        table = np.concatenate([vectors[rows], foreign, vectors[TRAIN:]])
        trained(run, table, [*labels[rows], *[""] * len(foreign)], classes[TRAIN:], draw)


if __name__ == "__main__":
    main()
