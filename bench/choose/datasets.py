"""The datasets of `run.py`: vectors and classes of at most 3,000 samples each, made once and kept in a folder.

Photos become features of `tf_efficientnet_lite0` by `calmix train --features-only`, texts TF-IDF in 256 dimensions. `$CALMIX` is the program,
`calmix` by default, and `$CALMIX_DATASETS` has `cifar10`, `cifar100`, `fashion-mnist` and `tiny-imagenet-10`.
"""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

SAMPLES = 3000
PIXELS = 96
RECORD = [("offset", "<u8"), ("part", "<u4"), ("length", "<u4"), ("checksum", "<u4"), ("label", "<u4")]
SECTIONS = ["admin", "electronics", "games", "graphics", "mail", "net", "science", "sound", "text", "web"]


def evenly(classes, count):
    """Rows with the same number of each class, `count` in all, in a random order."""
    order = np.random.default_rng(0).permutation(len(classes))
    names = np.unique(classes)
    rows = [order[classes[order] == name][: count // len(names)] for name in names]
    return np.sort(np.concatenate(rows))


def cifar(work, name, files, header):
    """Photos of CIFAR, one folder per class."""
    from PIL import Image

    folder = Path(os.environ["CALMIX_DATASETS"]) / name
    raw = np.concatenate([np.fromfile(next(folder.rglob(file)), "u1") for file in files]).reshape(-1, header + 3072)
    classes = raw[:, header - 1]
    for row in evenly(classes, SAMPLES):
        place = work / "images" / f"{classes[row]:03}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(raw[row, header:].reshape(3, 32, 32).transpose(1, 2, 0)).save(place / f"{row:05}.png")
    return features(work)


def tiny_imagenet(work):
    """Photos of ten classes."""
    source = Path(os.environ["CALMIX_DATASETS"]) / "tiny-imagenet-10/train"
    paths = sorted(path for path in source.rglob("*") if path.suffix.lower() in [".jpeg", ".jpg", ".png"])
    classes = np.array([path.relative_to(source).parts[0] for path in paths])
    for row in evenly(classes, SAMPLES):
        place = work / "images" / classes[row]
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(paths[row], place / paths[row].name)
    return features(work)


def features(work):
    """One vector for each image of a folder, by the backbone in its clean view."""
    calmix = os.environ.get("CALMIX", "calmix")
    images, table, cache = (work / name for name in ["images", "table", "cache"])
    if not table.exists():
        subprocess.run([calmix, "prepare", images, "--to", table], check=True)
    keys = [f"network.cache={cache}", "network.weights=tf_efficientnet_lite0", f"augment.size={PIXELS}"]
    keys += ["labels.keep=per-class", "labels.count=1"]
    sets = [part for key in keys for part in ["--set", key]]
    subprocess.run([calmix, "train", "head-folder", "--features-only", "--data", images, "--prepared", table, *sets], check=True)
    return of_cache(cache, table)


def of_cache(cache, table):
    from safetensors.numpy import load_file

    vectors = {}
    for path in sorted(cache.rglob("page-*.safetensors")):
        page = load_file(path)
        clean = np.flatnonzero((page["views"].reshape(-1, 2) == 0).all(axis=1))[0]
        vectors.update(zip(page["ids"].astype(int).tolist(), page["vectors"][:, clean]))
    labels = np.fromfile(table / "samples.bin", RECORD)["label"]
    count = len(json.loads((table / "manifest.json").read_text())["classes"])
    ids = [number for number in sorted(vectors) if labels[number] < count]
    return np.stack([vectors[number] for number in ids]).astype("float32"), labels[ids].astype("int64")


def fashion_mnist(work):
    """Pixels, without a network."""
    source = Path(os.environ["CALMIX_DATASETS"]) / "fashion-mnist"
    pixels = gzip.decompress((source / "train-images-idx3-ubyte.gz").read_bytes())
    classes = np.frombuffer(gzip.decompress((source / "train-labels-idx1-ubyte.gz").read_bytes())[8:], "u1")
    rows = evenly(classes, SAMPLES)
    return np.frombuffer(pixels[16:], "u1").reshape(-1, 784)[rows].astype("float32"), classes[rows].astype("int64")


def debian(work):
    """Descriptions of Debian's packages and their sections, as in bindings/python/examples/debian_sections.ipynb."""
    index = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    packages = {}
    for entry in index.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in entry.splitlines() if ": " in line and not line.startswith(" "))
        text = fields.get("Description") or fields.get("Description-en") or ""
        if fields.get("Section") in SECTIONS and text:
            packages.setdefault(text, SECTIONS.index(fields["Section"]))
    texts = sorted(packages)
    classes = np.array([packages[text] for text in texts])
    counts = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
    rows = evenly(classes, SAMPLES)
    return TruncatedSVD(256, random_state=0).fit(counts).transform(counts[rows]), classes[rows]


# The loader, and whether the columns are features of a table, which are scaled one by one.
DATASETS = {
    "breast cancer": (lambda work: load_breast_cancer(return_X_y=True), True),
    "digits": (lambda work: load_digits(return_X_y=True), False),
    "Fashion-MNIST": (fashion_mnist, False),
    "Debian's sections": (debian, False),
    "Tiny ImageNet": (tiny_imagenet, False),
    "CIFAR-10": (lambda work: cifar(work, "cifar10", ["data_batch_1.bin"], 1), False),
    "CIFAR-100": (lambda work: cifar(work, "cifar100", ["train.bin"], 2), False),
}


def dataset(work, name):
    """Vectors, classes and whether they are a table; made if `work` lacks them."""
    load, is_table = DATASETS[name]
    folder = work / name.lower().replace("'", "").replace(" ", "-")
    kept = folder / "vectors.npz"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        vectors, classes = load(folder)
        np.savez(kept, vectors=vectors, classes=classes)
    found = np.load(kept)
    return found["vectors"], found["classes"], is_table
