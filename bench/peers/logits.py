"""Makes the predictions of an over-confident classifier: `FOLDER ROWS CLASSES` writes logits.f32, probabilities.f32 and
labels.u32, row by row.

The logits are normal, that of the label is raised by up to 12, and all are too large by a factor of 1.7.
"""

import pathlib
import sys

import numpy as np


def main():
    folder, rows, classes = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    draw = np.random.Generator(np.random.Philox(1))
    logits = 2 * draw.standard_normal((rows, classes), dtype=np.float32)
    labels = draw.integers(classes, size=rows)
    logits[np.arange(rows), labels] += 12 * draw.random(rows, dtype=np.float32)
    logits *= np.float32(1.7)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    logits.tofile(folder / "logits.f32")
    probabilities.tofile(folder / "probabilities.f32")
    labels.astype(np.uint32).tofile(folder / "labels.u32")


main()
