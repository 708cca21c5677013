"""Vectors of planted classes in a file of any size: `planted.py OUT ROWS`, with NumPy.

OUT gets `vectors.npy`, ROWS × 768 in float16, ten classes of equal size, and `labels.csv` with 25 labels per class. Row n has class
n % 10: the centre of its class and noise. The noise of a block of rows is that of the first block, turned by a number of columns
and rows that differs between blocks, since drawing billions of normal numbers takes longer than reading them.
"""

import sys
from pathlib import Path

import numpy as np

WIDTH = 768
CLASSES = 10
LABELS = 25
BLOCK = 20_000
# Of a coordinate of a centre; with noise of deviation 1 neighbouring classes overlap by some per cent.
SPREAD = 0.12


def main():
    out, rows = Path(sys.argv[1]), int(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    centres = (SPREAD * random.standard_normal((CLASSES, WIDTH))).astype("float32")
    noise = random.standard_normal((BLOCK, WIDTH), dtype="float32")
    classes = np.arange(BLOCK) % CLASSES
    with (out / "vectors.npy").open("wb") as file:
        header = {"descr": "<f2", "fortran_order": False, "shape": (rows, WIDTH)}
        np.lib.format.write_array_header_1_0(file, header)
        for block, start in enumerate(range(0, rows, BLOCK)):
            turned = np.roll(noise, (37 * block % BLOCK, block % WIDTH), axis=(0, 1))
            file.write((turned + centres[classes])[: rows - start].astype("float16").tobytes())
    lines = [f"{row},{row % CLASSES}\n" for row in range(LABELS * CLASSES)]
    (out / "labels.csv").write_text("row,label\n" + "".join(lines))


if __name__ == "__main__":
    main()
