"""A copy of a dataset whose test split is its first 10,000 training images: `clean.py NAME DATA OUT`.

calmix makes only the clean view of test images, so `calmix train --features-only` on the dataset and on the copy makes one vector
of each image. NAME is cifar10, cifar100 or fashion-mnist, DATA its folder.
"""

import gzip
import shutil
import sys
from pathlib import Path

TRAIN = 10_000
CIFAR = {"cifar10": (3073, "data_batch_1.bin", "test_batch.bin"), "cifar100": (3074, "train.bin", "test.bin")}


def main():
    name, data, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    shutil.copytree(data, out)
    if name in CIFAR:
        size, train, test = CIFAR[name]
        (out / test).write_bytes((data / train).read_bytes()[: TRAIN * size])
        return
    for kind, header, size in [("images-idx3", 16, 784), ("labels-idx1", 8, 1)]:
        train = gzip.decompress((data / f"train-{kind}-ubyte.gz").read_bytes())
        start = train[:4] + TRAIN.to_bytes(4, "big") + train[8:header]
        (out / f"t10k-{kind}-ubyte.gz").write_bytes(gzip.compress(start + train[header : header + TRAIN * size]))


if __name__ == "__main__":
    main()
