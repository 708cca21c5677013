"""MATLAB files as SciPy writes them, for tests/formats: every pixel is (3x + 11y + 67c + 29n) mod 256.

Run with Python 3.11.7, SciPy 1.17.1 and NumPy 2.4.6; the header of each file holds SciPy's line with the date cut
out, so that a second run writes the same bytes.
"""

from pathlib import Path

import numpy as np
from scipy.io import savemat

FOLDER = Path(__file__).parent / "mat"
LABELS = [10, 3, 1, 9, 7]


def images(n):
    """Rows first: X[y, x, c, n], as MATLAB holds SVHN."""
    y, x, c, i = np.meshgrid(np.arange(32), np.arange(32), np.arange(3), np.arange(n), indexing="ij")
    return ((3 * x + 11 * y + 67 * c + 29 * i) % 256).astype(np.uint8)


def write(name, variables, **options):
    path = FOLDER / f"{name}.mat"
    savemat(path, variables, **options)
    raw = bytearray(path.read_bytes())
    if options.get("format") != "4":
        raw[:116] = b"MATLAB 5.0 MAT-file Platform: posix".ljust(116)
    path.write_bytes(bytes(raw))


def main():
    FOLDER.mkdir(exist_ok=True)
    column = np.array(LABELS).reshape(-1, 1)
    for packed in (True, False):
        kind = "packed" if packed else "plain"
        n = 5 if packed else 2
        x, y = images(n), column[:n]
        write(f"{kind}_x_y_uint8", {"X": x, "y": y.astype(np.uint8)}, do_compression=packed)
        write(f"{kind}_y_x_double", {"y": y.astype(np.float64), "X": x}, do_compression=packed)
    # Up to four bytes stand in the head of their element.
    for dtype in (np.int8, np.uint16):
        write(f"small_{dtype.__name__}", {"X": images(2), "y": column[:2].astype(dtype)}, do_compression=True)
    for dtype in (np.int16, np.int32, np.uint32, np.int64, np.uint64, np.float32):
        name = f"packed_{dtype.__name__}"
        write(name, {"y": column.astype(dtype), "X": images(5)}, do_compression=True)
    write("one", {"X": images(1)[..., 0], "y": np.uint8([[10]])}, do_compression=True)
    write("row", {"X": images(5), "y": column.T.astype(np.uint8)}, do_compression=True)
    others = {"note": "text", "cells": np.array([1, "b"], dtype=object), "s": {"a": 1.0}, "long_name_of_one": 2.0}
    write("among_others", {**others, "X": images(5), "y": column.astype(np.uint8)}, do_compression=True)
    write("version_4", {"y": column.astype(np.float64)}, format="4")
    write("complex", {"X": images(1)[..., 0], "y": np.array([[1 + 2j]])}, do_compression=True)


if __name__ == "__main__":
    main()
