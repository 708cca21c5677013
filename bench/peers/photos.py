"""Makes images that compress like photographs: `FOLDER WIDTH HEIGHT SUFFIX` writes 64 of them.

Noise of all scales with amplitudes that fall with the frequency, a few shapes with sharp edges, and grain. At quality
90 a JPEG of 500×375 pixels has about 50 KB.
"""

import pathlib
import sys

import numpy as np
from PIL import Image, ImageDraw

COUNT, OCTAVES, GRAIN = 64, 6, 5


def picture(draw, width, height):
    values = np.full((height, width, 3), 128.0)
    for octave in range(OCTAVES):
        cells = draw.normal(0, 60 / 1.7**octave, (2 + 2**octave, 2 + 2**octave, 3))
        for channel in range(3):
            layer = Image.fromarray((cells.mean(axis=2) + 0.5 * cells[:, :, channel]).astype(np.float32))
            values[:, :, channel] += np.asarray(layer.resize((width, height), Image.Resampling.BICUBIC))
    image = Image.fromarray(values.clip(0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for shape in [pen.ellipse, pen.rectangle] * 4:
        (x, y), size = draw.random(2) * [width, height], draw.uniform(0.05, 0.3) * height
        shape((x, y, x + size, y + size), tuple(int(v) for v in draw.integers(256, size=3)))
    grain = draw.normal(0, GRAIN, (height, width, 1))
    return Image.fromarray((np.asarray(image) + grain).clip(0, 255).astype(np.uint8))


def main():
    folder, width, height, suffix = sys.argv[1:]
    for number in range(COUNT):
        image = picture(np.random.Generator(np.random.Philox(number)), int(width), int(height))
        image.save(pathlib.Path(folder) / f"{number:03}.{suffix}", quality=90)


main()
