"""Vectors for the trials of labelling, from a cache of clean features: `vectors.py CACHE TABLE OUT [DIMENSIONS]`, with NumPy and safetensors.

CACHE is a folder of pages (docs/guides/frozen-features.md), TABLE the prepared folder of its dataset. The features are centred, projected to
their principal components, 64 by default, and scaled to unit length. OUT gets `vectors.npy`, `classes.npy` and `ids.npy`: the samples of the
cache that have a class, in a random order.
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

RECORD = [("offset", "<u8"), ("part", "<u4"), ("length", "<u4"), ("checksum", "<u4"), ("label", "<u4")]


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


def main():
    cache, table, out = map(Path, sys.argv[1:4])
    dimensions = int(sys.argv[4]) if len(sys.argv) > 4 else 64
    vectors = {}
    for path in sorted(cache.rglob("page-*.safetensors")):
        page = load_file(path)
        clean = np.flatnonzero((page["views"].reshape(-1, 2) == 0).all(axis=1))[0]
        vectors.update(zip(page["ids"].astype(int).tolist(), page["vectors"][:, clean]))
    labels = np.fromfile(table / "samples.bin", RECORD)["label"]
    classes = json.loads((table / "manifest.json").read_text())["classes"]
    ids = np.array([id for id in vectors if labels[id] < len(classes)])
    ids = np.random.default_rng(0).permutation(ids)
    features = np.stack([vectors[id] for id in ids]).astype("float32")
    features = unit(features - features.mean(axis=0))
    _, directions = np.linalg.eigh((features.T @ features).astype("float64"))
    projected = unit(features @ directions[:, ::-1][:, :dimensions].astype("float32"))
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "vectors.npy", projected.astype("float32"))
    np.save(out / "classes.npy", labels[ids].astype("int64"))
    np.save(out / "ids.npy", ids)
    print(f"{len(ids)} vectors of {dimensions} numbers in {out}")


if __name__ == "__main__":
    main()
