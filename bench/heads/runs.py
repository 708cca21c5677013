"""Runs of heads on frozen features: `runs.py cifar10|photos|rows|default|seconds RUNS FIRST LAST`, for the seeds FIRST to LAST.

`cifar10` and `photos` are the head of the recipe beside labels alone, on CIFAR-10 (4, 10 and 25 labels per class) and on folders of
photos (5, 15 and 30). `rows` is every base with every mixup on CIFAR-10 with 4 and 25 labels per class, without the head on labels
alone. `default` is `head-folder` with five views of each image beside one clean view, on CIFAR-10, Fashion-MNIST and photos (100, 300
and 600 of them) with 4, 10 and 25 labels per class; `seconds` is its photos, each run with features of
its own. `RUN.seconds` has how long a run took. A run that RUNS already has is left out. `$CALMIX` is the program, `calmix` by
default, and `$CALMIX_DATASETS` has the images in `cifar10`, `fashion-mnist` and `tiny-imagenet-10`.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BASES = ["supervised", "fixmatch", "softmatch"]
MIXUPS = {"none": ("none", "hard"), "random": ("random", "hard"), "calibratemix": ("calibratemix", "hard")}
MIXUPS["calibratemix-soft"] = ("calibratemix", "soft")


# The head of the recipe, and the candidates for one vector per image.
VIEWS = {"views": [], "clean": ["network.weak_views=0", "network.strong_views=0"]}


def on_cifar10(datasets):
    return ["head-cifar10", "--data", datasets / "cifar10"]


def of_photos(count, unlabelled):
    keys = ["dataset.test=val", "labels.keep=per-class", f"labels.count={count}"]
    return [*keys, f"labels.unlabelled_count={unlabelled}"]


def cifar10(datasets):
    for count in [4, 10, 25]:
        yield f"cifar10-{count}", on_cifar10(datasets), [f"labels.count={count}"]


def photos(datasets):
    for count in [5, 15, 30]:
        images = ["head-folder", "--data", datasets / "tiny-imagenet-10"]
        yield f"photos-{count}", images, of_photos(count, 10 * count)


def default(datasets):
    fashion = ["head-cifar10", "--data", datasets / "fashion-mnist"]
    tiny = ["head-folder", "--data", datasets / "tiny-imagenet-10"]
    # Ten classes: 100, 300 and 600 photos.
    for count, unlabelled in [(4, 60), (10, 200), (25, 350)]:
        for views, keys in VIEWS.items():
            # The preset of `head-folder`.
            keys = ["preset=calibrated", *keys]
            labels = [f"labels.count={count}"]
            yield f"default-cifar10-{count}-{views}", on_cifar10(datasets), labels + keys
            yield f"default-fashion-{count}-{views}", fashion, ["dataset.source=fashion-mnist", *labels, *keys]
            yield f"default-photos-{count}-{views}", tiny, of_photos(count, unlabelled) + keys


def rows(datasets):
    for count in [4, 25]:
        for base in BASES:
            for name, (pairing, target) in MIXUPS.items():
                # A mixup of the supervised base needs unlabelled images.
                method = base if base != "supervised" or name == "none" else "supervised-pseudo-mixup"
                keys = [f"labels.count={count}", "network.labels_alone=false", f"method.base={method}"]
                keys += [f"method.mixup.pairing={pairing}", f"method.mixup.pseudo_target={target}"]
                yield f"{base}-{name}-{count}", on_cifar10(datasets), keys


def seconds(datasets):
    """The photos of `default`, each run with a cache of its own."""
    for name, start, keys in default(datasets):
        if "photos" in name:
            yield name.replace("default", "seconds"), start, [*keys, f"network.cache={tempfile.mkdtemp()}"]


def main():
    what, runs, first, last = sys.argv[1:]
    datasets = Path(os.environ["CALMIX_DATASETS"])
    choices = {"cifar10": cifar10, "photos": photos, "rows": rows, "default": default, "seconds": seconds}
    shared = ["network.weights=tf_efficientnet_lite0", "evaluate.bootstrap=0"]
    shared.append(f"network.cache={Path(runs).absolute().parent / 'features'}")
    for seed in range(int(first), int(last) + 1):
        for name, start, keys in choices[what](datasets):
            run = Path(runs) / f"{name}-{seed}"
            if (run / "result.json").exists():
                continue
            sets = [part for key in shared + keys for part in ["--set", key]]
            command = [os.environ.get("CALMIX", "calmix"), "train", *start, "--seed", str(seed), "--run-dir", run]
            began = time.monotonic()
            subprocess.run([*command, "--threads", "2", *sets], check=True)
            (Path(runs) / f"{run.name}.seconds").write_text(f"{time.monotonic() - began:.1f}\n")


if __name__ == "__main__":
    main()
