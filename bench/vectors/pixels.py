"""The pixels of Fashion-MNIST in the files of `features.py`: `pixels.py DATA OUT`; the first 10,000 training images, then the test images."""

import gzip
import sys
from pathlib import Path

import numpy as np

from draws import TRAIN


def read(path, header):
    return np.frombuffer(gzip.decompress(path.read_bytes())[header:], "u1")


def main():
    data, out = map(Path, sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    parts = [(f"{name}-images-idx3-ubyte.gz", f"{name}-labels-idx1-ubyte.gz", rows) for name, rows in [("train", TRAIN), ("t10k", None)]]
    vectors = np.concatenate([read(data / images, 16).reshape(-1, 784)[:rows] for images, _, rows in parts])
    np.save(out / "vectors.npy", (vectors / 255).astype("float16"))
    np.save(out / "classes.npy", np.concatenate([read(data / labels, 8)[:rows] for _, labels, rows in parts]).astype("int64"))


if __name__ == "__main__":
    main()
