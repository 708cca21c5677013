"""Labels with augmented copies, and what linking them does: `copies.py make|run|table …`, with Pillow, NumPy and safetensors.

`make PHOTOS OUT` makes a folder of images from the training images and the split `val` of PHOTOS (64 × 64 pixels, ten classes):
per class 40 images to label, a copy of each of these, 100 unlabelled images and up to 200 test images. `run OUT RUNS FIRST LAST`
trains heads with ten labels per class, of which 0, 20 and 40% have a copy with the same label, for the seeds FIRST to LAST, with
`labels.link_copies` off and on; a run that RUNS already has is left out. `table OUT RUNS` prints how many copies of each kind
share the group of their original, and how many distinct images share one; then the coverage of LAC sets on the test images,
without the rule that a set has the most probable class: the heads are right in more than 90% of the images, so that rule alone
covers 90%. The sets and the precision that users get are those of `cargo run --example head_guarantees`. `$CALMIX` is the program,
`calmix` by default.
"""

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

KINDS = ["flip", "brightness", "crop", "shift", "all"]
LABELLED, POOL, TEST, LABELS = 40, 100, 150, 10
SHARES = [0, 20, 40]


def copy_of(image, kind, rng):
    """The image with a change that a burst or an augmentation might make."""
    from PIL import Image, ImageEnhance, ImageOps

    side = image.size[0]
    if kind in ("crop", "all"):
        part = round(side * rng.uniform(0.75, 0.95))
        left, top = rng.integers(0, side - part + 1, 2)
        image = image.crop((left, top, left + part, top + part)).resize((side, side), Image.BICUBIC)
    if kind in ("flip", "all"):
        image = ImageOps.mirror(image)
    if kind in ("brightness", "all"):
        image = ImageEnhance.Brightness(image).enhance(rng.uniform(0.7, 1.3))
        image = ImageEnhance.Contrast(image).enhance(rng.uniform(0.7, 1.3))
    if kind == "shift":
        most = side // 8
        down, right = rng.integers(0, 2 * most + 1, 2)
        padded = np.pad(np.asarray(image), ((most, most), (most, most), (0, 0)), "reflect")
        image = Image.fromarray(padded[down : down + side, right : right + side])
    return image


def make(photos, out):
    from PIL import Image

    rng = np.random.default_rng(0)
    for folder in sorted((photos / "train").iterdir()):
        files = sorted(folder.rglob("*.JPEG"))
        tests = sorted((photos / "val" / folder.name).rglob("*.JPEG"))
        parts = np.split(np.array(files), [LABELLED, LABELLED + POOL, LABELLED + POOL + TEST])
        for split in ["train", "test"]:
            (out / split / folder.name).mkdir(parents=True)
        for n, file in enumerate(parts[0]):
            image = Image.open(file).convert("RGB")
            image.save(out / "train" / folder.name / f"label-{n:03}.png")
            kind = KINDS[n % len(KINDS)]
            copy_of(image, kind, rng).save(out / "train" / folder.name / f"copy-{n:03}-{kind}.png")
        for n, file in enumerate(parts[1]):
            Image.open(file).convert("RGB").save(out / "train" / folder.name / f"pool-{n:03}.png")
        for n, file in enumerate([*parts[2], *tests]):
            Image.open(file).convert("RGB").save(out / "test" / folder.name / f"test-{n:03}.png")


def names(out):
    """The training images in the order of their ids."""
    return sorted(path.relative_to(out) for path in (out / "train").rglob("*.png"))


def labels(out, seed, share):
    """Ten images per class, and copies of a share of them."""
    rng = np.random.default_rng(seed)
    chosen = []
    for folder in sorted((out / "train").iterdir()):
        drawn = rng.permutation(LABELLED)[:LABELS]
        chosen += [folder / f"label-{n:03}.png" for n in drawn]
        chosen += [next(folder.glob(f"copy-{n:03}-*.png")) for n in drawn[: LABELS * share // 100]]
    return {path.relative_to(out) for path in chosen}


def run(out, runs, first, last):
    calmix = os.environ.get("CALMIX", "calmix")
    runs.mkdir(parents=True, exist_ok=True)
    prepared = runs.absolute() / "table"
    if not prepared.exists():
        subprocess.run([calmix, "prepare", out, "--to", prepared], check=True)
    fingerprint = json.loads((prepared / "manifest.json").read_text())["fingerprint"]
    plan = {"seed": 0, "rule": "given", "labelled": ["train"], "unlabelled": ["train"], "include_labelled": True, "validation": 0.0}
    pool = runs / "pool.csv"
    pool.write_text("path\n" + "".join(f"{path}\n" for path in names(out) if path.name.startswith("pool")))
    shared = ["network.weights=tf_efficientnet_lite0", "augment.size=128", "network.weak_views=0", "network.strong_views=0"]
    shared += ["evaluate.bootstrap=0", "network.folds=5", f"network.cache={runs.absolute() / 'features'}"]
    shared += [f"dataset.prepared={prepared}", "labels.keep=given"]
    for seed in range(int(first), int(last) + 1):
        for share in SHARES:
            split = runs.absolute() / f"split-{share}-{seed}.json"
            chosen = labels(out, seed, share)
            ids = [n for n, path in enumerate(names(out)) if path in chosen]
            content = {"version": 1, "dataset": fingerprint, "plan": plan, "labelled": ids, "validation": [], "short": []}
            split.write_text(json.dumps(content))
            for name, link in {"alone": "false", "linked": "true"}.items():
                folder = runs / f"{name}-{share}-{seed}"
                if (folder / "result.json").exists():
                    continue
                keys = [*shared, f"labels.file={split}", f"labels.link_copies={link}"]
                sets = [part for key in keys for part in ["--set", key]]
                command = [calmix, "train", "head-folder", "--data", out, "--unlabelled", pool, "--seed", str(seed)]
                subprocess.run([*command, "--run-dir", folder, *sets], check=True)


def table(out, runs):
    from safetensors.numpy import load_file

    files = names(out)
    for share in SHARES:
        found = collections.defaultdict(list)
        distinct = []
        for folder in sorted(runs.glob(f"linked-{share}-*")):
            predictions = load_file(max((folder / "predictions").glob("*-out-of-fold-ema.safetensors")))
            images = [files[n] for n in predictions["ids"]]
            groups = predictions.get("groups", np.arange(len(images)))
            original = [(path.parent.name, path.stem.split("-")[1]) for path in images]
            members = collections.defaultdict(set)
            for group, image in zip(groups, original):
                members[group].add(image)
            distinct += [len(members[group]) > 1 for group in groups]
            group_of = {path: group for path, group in zip(images, groups)}
            for path in images:
                if path.name.startswith("copy"):
                    _, number, kind = path.stem.split("-")
                    found[kind].append(group_of[path] == group_of[path.parent / f"label-{number}.png"])
        kinds = ", ".join(f"{kind} {100 * np.mean(found[kind]):.0f}% of {len(found[kind])}" for kind in KINDS if found[kind])
        for name in ["alone", "linked"]:
            for level in [0.9, 0.95]:
                covered = 100 * np.array([coverage(folder, level) for folder in sorted(runs.glob(f"{name}-{share}-*"))])
                error = covered.std(ddof=1) / len(covered) ** 0.5
                print(f"{share}%, {name}: {100 * level:.0f}% sets cover {covered.mean():.1f} ± {error:.1f}%")
        print(f"{share}%: {100 * np.mean(distinct):.2f}% of {len(distinct)} labels with a distinct image; {kinds}")


def probabilities(predictions, temperature):
    logits = predictions["logits"].astype(float) / temperature
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def coverage(folder, level):
    """The share of the test images whose class is in its set: a label of a group of n weighs 1/((G+1)n)."""
    from safetensors.numpy import load_file

    files = folder / "predictions"
    labels, test = (load_file(max(files.glob(f"*-{split}-ema.safetensors"))) for split in ["out-of-fold", "test"])
    calibration = json.loads((folder / "model.json").read_text()).get("calibration") or {"calibrator": {}}
    temperature = calibration["calibrator"].get("temperature", 1.0)
    wrong = [1 - probabilities(some, temperature)[np.arange(len(some["labels"])), some["labels"]] for some in [labels, test]]
    groups = labels.get("groups", np.arange(len(wrong[0])))
    _, places, counts = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.argsort(wrong[0])
    weights = np.cumsum((1 / ((len(counts) + 1) * counts[places]))[order])
    place = np.searchsorted(weights, level - 1e-9)
    threshold = wrong[0][order[place]] if place < len(order) else 1.0
    return (wrong[1] <= threshold).mean()


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    folders = [Path(argument) for argument in arguments[:2]]
    {"make": make, "run": run, "table": table}[what](*folders, *arguments[2:])
