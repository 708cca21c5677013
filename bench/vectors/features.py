"""One clean vector per image from feature caches: `features.py OUT CACHE TABLE CACHE TABLE`, with NumPy and safetensors.

A CACHE is a folder of pages (docs/guides/frozen-features.md) and TABLE the prepared folder of its dataset: first those of the copy that
`clean.py` makes, then those of the dataset. OUT gets `vectors.npy`, 10,000 training images and then the test images, and
`classes.npy`, the class of each.
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

RECORD = [("offset", "<u8"), ("part", "<u4"), ("length", "<u4"), ("checksum", "<u4"), ("label", "<u4")]


def test_split(cache, table):
    """The clean vectors of the test images and their classes, in the order of the table."""
    pages = [load_file(path) for path in sorted(cache.rglob("page-*.safetensors"))]
    subsets = json.loads((table / "manifest.json").read_text())["subsets"]
    test = next(subset for subset in subsets if subset["name"] == "test")
    labels = np.fromfile(table / "samples.bin", RECORD)["label"][test["first"] :][: test["count"]]
    vectors = np.zeros((test["count"], pages[0]["vectors"].shape[-1]), "float16")
    seen = np.zeros(test["count"], bool)
    for page in pages:
        ids = page["ids"].astype("int64") - test["first"]
        rows = (ids >= 0) & (ids < test["count"])
        clean = np.flatnonzero((page["views"].reshape(-1, 2) == 0).all(axis=1))[0]
        vectors[ids[rows]] = page["vectors"][rows, clean]
        seen[ids[rows]] = True
    assert seen.all(), f"{cache}: {(~seen).sum()} test images have no vector"
    return vectors, labels.astype("int64")


def main():
    out, *folders = map(Path, sys.argv[1:])
    parts = [test_split(cache, table) for cache, table in zip(folders[::2], folders[1::2])]
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "vectors.npy", np.concatenate([vectors for vectors, _ in parts]))
    np.save(out / "classes.npy", np.concatenate([classes for _, classes in parts]))


if __name__ == "__main__":
    main()
