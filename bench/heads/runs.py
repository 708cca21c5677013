"""Runs of heads on frozen features: `runs.py cifar10|photos|rows CIFAR10 PHOTOS RUNS FIRST LAST`, for the seeds FIRST to LAST.

`cifar10` and `photos` are the default head beside labels alone, on CIFAR-10 (4, 10 and 25 labels per class) and on folders of
photos (5, 15 and 30). `rows` is every base with every mixup on CIFAR-10 with 4 and 25 labels per class, without the head on labels alone. A run
that RUNS already has is left out. `$CALMIX` is the program, `calmix` by default.
"""

import os
import subprocess
import sys
from pathlib import Path

BASES = ["supervised", "fixmatch", "softmatch"]
MIXUPS = {"none": ("none", "hard"), "random": ("random", "hard"), "calibratemix": ("calibratemix", "hard")}
MIXUPS["calibratemix-soft"] = ("calibratemix", "soft")


def cifar10(images, _):
    for count in [4, 10, 25]:
        yield f"cifar10-{count}", ["head-cifar10", "--data", images], [f"labels.count={count}"]


def photos(_, images):
    for count in [5, 15, 30]:
        keys = ["dataset.test=val", "labels.keep=per-class", f"labels.count={count}"]
        keys.append(f"labels.unlabelled_count={10 * count}")
        yield f"photos-{count}", ["head-folder", "--data", images], keys


def rows(images, _):
    for count in [4, 25]:
        for base in BASES:
            for name, (pairing, target) in MIXUPS.items():
                # A mixup of the supervised base needs unlabelled images.
                method = base if base != "supervised" or name == "none" else "supervised-pseudo-mixup"
                keys = [f"labels.count={count}", "network.labels_alone=false", f"method.base={method}"]
                keys += [f"method.mixup.pairing={pairing}", f"method.mixup.pseudo_target={target}"]
                yield f"{base}-{name}-{count}", ["head-cifar10", "--data", images], keys


def main():
    what, *folders, runs, first, last = sys.argv[1:]
    shared = ["network.weights=tf_efficientnet_lite0", "evaluate.bootstrap=0"]
    shared.append(f"network.cache={Path(runs).absolute().parent / 'features'}")
    for seed in range(int(first), int(last) + 1):
        for name, start, keys in {"cifar10": cifar10, "photos": photos, "rows": rows}[what](*folders):
            run = Path(runs) / f"{name}-{seed}"
            if (run / "result.json").exists():
                continue
            sets = [part for key in shared + keys for part in ["--set", key]]
            command = [os.environ.get("CALMIX", "calmix"), "train", *start, "--seed", str(seed), "--run-dir", run]
            subprocess.run([*command, "--threads", "2", *sets], check=True)


if __name__ == "__main__":
    main()
