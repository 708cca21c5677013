"""Vectors of planted classes in a file of any size: `planted.py OUT ROWS [WIDTH [VIEWS]]`, with NumPy.

OUT gets `vectors.npy`, ROWS × WIDTH (768 by default) or ROWS × VIEWS × WIDTH in float16, ten classes of equal size, and
`labels.csv` with 25 labels per class. Row n has class n % 10: the centre of its class and noise, which differs between views. The noise of a block of rows is that of the first block, turned by a number of columns
and rows that differs between blocks, since drawing billions of normal numbers takes longer than reading them.
"""

import sys
from pathlib import Path

import numpy as np

CLASSES = 10
LABELS = 25
BLOCK = 20_000
# Of a coordinate of a centre; with noise of deviation 1 neighbouring classes overlap by some per cent.
SPREAD = 0.12


def main():
    out, rows = Path(sys.argv[1]), int(sys.argv[2])
    width = int(sys.argv[3]) if len(sys.argv) > 3 else 768
    views = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    out.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    centres = (SPREAD * random.standard_normal((CLASSES, width))).astype("float32")
    noise = random.standard_normal((BLOCK, width), dtype="float32")
    # The views of a row are one after the other.
    classes = np.arange(BLOCK) // views % CLASSES
    vectors = rows * views
    with (out / "vectors.npy").open("wb") as file:
        header = {"descr": "<f2", "fortran_order": False, "shape": (rows, width) if views == 1 else (rows, views, width)}
        np.lib.format.write_array_header_1_0(file, header)
        for block, start in enumerate(range(0, vectors, BLOCK)):
            turned = np.roll(noise, (37 * block % BLOCK, block % width), axis=(0, 1))
            file.write((turned + centres[classes])[: vectors - start].astype("float16").tobytes())
    lines = [f"{row},{row % CLASSES}\n" for row in range(LABELS * CLASSES)]
    (out / "labels.csv").write_text("row,label\n" + "".join(lines))


if __name__ == "__main__":
    main()
