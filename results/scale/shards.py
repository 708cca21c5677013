"""Writes Fashion-MNIST as tar shards of 1,000 images, shuffled or sorted by class: `shards.py FASHION_MNIST OUT [--sorted]`."""

import gzip
import io
import random
import struct
import sys
import tarfile
import zlib
from pathlib import Path

SHARD = 1000


def png(pixels, side=28):
    """A grey image as PNG."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + pixels[at : at + side] for at in range(0, side * side, side))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def images(folder, split):
    pixels = gzip.decompress((folder / f"{split}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{split}-labels-idx1-ubyte.gz").read_bytes())[8:]
    return [(label, pixels[784 * at : 784 * (at + 1)]) for at, label in enumerate(labels)]


def write(samples, out, split):
    for begin in range(0, len(samples), SHARD):
        with tarfile.open(out / f"{split}-{begin // SHARD:03}.tar", "w", format=tarfile.USTAR_FORMAT) as shard:
            for at, (label, pixels) in enumerate(samples[begin : begin + SHARD], begin):
                for ending, body in [("png", png(pixels)), ("cls", str(label).encode())]:
                    member = tarfile.TarInfo(f"{at:06}.{ending}")
                    member.size = len(body)
                    shard.addfile(member, io.BytesIO(body))


def main():
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True)
    train = images(folder, "train")
    random.Random(0).shuffle(train)
    if "--sorted" in sys.argv:
        train.sort(key=lambda sample: sample[0])
    write(train, out, "train")
    write(images(folder, "t10k"), out, "test")


if __name__ == "__main__":
    main()
