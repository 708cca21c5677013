"""Pillow's results for random images: one CRC-32 per case, for tests/golden_augment.rs.

    python augment.py                        writes augment.jsonl beside this file
    python augment.py OPERATION CASE         prints the image, the parameters and the result of one case

Images and parameters are drawn from the streams of calmix_core::rng (seed 3, domain 4, time = the
operation's place in OPERATIONS, sample = the case), so that only results are stored. The test draws the same.
"""

import json
import pathlib
import platform
import sys
import zlib

import numpy as np
import PIL
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

CASES = 600
SIZES = [(32, 32), (17, 23), (1, 1), (64, 48), (2, 2), (33, 31), (1, 9), (96, 96), (9, 1), (3, 3)]
SEED, WEAK = 3, 4
MASK = np.uint64(0xFFFFFFFF)


def philox4x32_10(c, k):
    c, k = [np.asarray(x, np.uint64) for x in c], list(k)
    for _ in range(10):
        left, right = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        shift = np.uint64(32)
        c = [(right >> shift) ^ c[1] ^ np.uint64(k[0]), right & MASK, (left >> shift) ^ c[3] ^ np.uint64(k[1]), left & MASK]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


class Stream:
    def __init__(self, time, sample):
        key = philox4x32_10([time, 0, WEAK, 0], [SEED, 0])
        blocks = np.arange(8192, dtype=np.uint64)
        zeros = np.zeros_like(blocks)
        words = philox4x32_10([blocks, zeros, zeros + np.uint64(sample), zeros], [int(key[0]), int(key[1])])
        self.words = np.stack(words, 1).ravel().astype(np.uint32)
        self.used = 0

    def take(self, count):
        self.used += count
        assert self.used <= len(self.words)
        return self.words[self.used - count : self.used]

    def uniform(self):
        low, high = (int(w) for w in self.take(2))
        return ((low | high << 32) >> 11) * 2.0**-53

    def below(self, bound):
        """Not the library's rule: parameters need no exact uniformity."""
        return int(self.uniform() * bound)


def picture(stream, width, height, kind):
    """Noise, dim noise, a noisy slope, one colour, four levels."""
    count = width * height * 3
    noise = stream.take((count + 3) // 4).astype("<u4").view(np.uint8)[:count].reshape(height, width, 3).astype(int)
    y, x, c = np.indices((height, width, 3))
    values = [
        noise,
        60 + (noise * 100 >> 8),
        (x * 5 + y * 3 + c * 40 + (noise >> 4)) & 255,
        np.broadcast_to(noise[:1, :1], noise.shape),
        noise & 0xC0 | 0x15,
    ][kind]
    return Image.fromarray(np.ascontiguousarray(values.astype(np.uint8)))


def affine(image, *matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix)


def rotate(image, s, case):
    turn = -200 + 400 * s.uniform()
    return image.rotate([0.0, 90.0, 180.0, 270.0, -90.0, 30.0][case // 10 % 6] if case % 10 == 7 else turn)


def cutout_random(image, s, case):
    width, height = image.size
    side = s.uniform() * 0.5 * width
    x, y = s.uniform() * width, s.uniform() * height
    x0, y0 = int(max(0, x - side / 2.0)), int(max(0, y - side / 2.0))
    ImageDraw.Draw(image).rectangle((x0, y0, min(width, x0 + side), min(height, y0 + side)), (125, 123, 114))
    return image


def cutout_fixed(image, s, case):
    width, height = image.size
    x, y = s.uniform() * width, s.uniform() * height
    x0, y0 = int(max(0, x - 16 / 2.0)), int(max(0, y - 16 / 2.0))
    image.paste((127, 127, 127), (x0, y0, min(width, x0 + 16), min(height, y0 + 16)))
    return image


def resize(filter):
    def apply(image, s, case):
        return image.resize((1 + s.below(80), 1 + s.below(80)), filter)

    return apply


def frame(image, s, case):
    """Cut out, resize in two cases of three, pad by reflection, cut a window, mirror every other one."""
    width, height = image.size
    left, top = s.below(width), s.below(height)
    right, bottom = left + 1 + s.below(width - left), top + 1 + s.below(height - top)
    image = image.crop((left, top, right, bottom))
    if case % 3:
        image = image.resize((1 + s.below(50), 1 + s.below(50)), Image.Resampling.BILINEAR)
    pad, side = s.below(12), 1 + s.below(40)
    pad = max([pad, side - image.width, side - image.height])
    image = Image.fromarray(np.pad(np.asarray(image), ((pad, pad), (pad, pad), (0, 0)), "reflect"))
    x, y = s.below(image.width - side + 1), s.below(image.height - side + 1)
    image = image.crop((x, y, x + side, y + side))
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if case % 2 else image


def enhance(kind):
    return lambda image, s, case: kind(image).enhance([0.0, 1.0][case // 10 % 2] if case % 10 == 7 else 2 * s.uniform())


OPERATIONS = {
    "autocontrast": lambda image, s, case: ImageOps.autocontrast(image),
    "brightness": enhance(ImageEnhance.Brightness),
    "colour": enhance(ImageEnhance.Color),
    "contrast": enhance(ImageEnhance.Contrast),
    "equalise": lambda image, s, case: ImageOps.equalize(image),
    "identity": lambda image, s, case: image,
    "posterise": lambda image, s, case: ImageOps.posterize(image, int(1 + 8 * s.uniform())),
    "rotate": rotate,
    "sharpness": enhance(ImageEnhance.Sharpness),
    "shear-x": lambda image, s, case: affine(image, 1, -1 + 2 * s.uniform(), 0, 0, 1, 0),
    "shear-y": lambda image, s, case: affine(image, 1, 0, 0, -1 + 2 * s.uniform(), 1, 0),
    "solarise": lambda image, s, case: ImageOps.solarize(image, 256 * s.uniform()),
    "translate-x": lambda image, s, case: affine(image, 1, 0, (-1.2 + 2.4 * s.uniform()) * image.width, 0, 1, 0),
    "translate-y": lambda image, s, case: affine(image, 1, 0, 0, 0, 1, (-1.2 + 2.4 * s.uniform()) * image.height),
    "cutout-random": cutout_random,
    "cutout-fixed": cutout_fixed,
    "resize-bilinear": resize(Image.Resampling.BILINEAR),
    "resize-bicubic": resize(Image.Resampling.BICUBIC),
    "frame": frame,
}


def run(operation, case):
    stream = Stream(list(OPERATIONS).index(operation), case)
    width, height = SIZES[case % len(SIZES)]
    image = picture(stream, width, height, case // len(SIZES) % 5)
    return image, OPERATIONS[operation](image.copy(), stream, case)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        before, after = run(sys.argv[1], int(sys.argv[2]))
        print(np.asarray(before).tolist(), np.asarray(after).tolist(), sep="\n")
        sys.exit()
    with open(pathlib.Path(__file__).with_suffix(".jsonl"), "w") as file:
        versions = {"python": platform.python_version(), "pillow": PIL.__version__, "numpy": np.__version__}
        print(json.dumps(versions), file=file)
        for operation in OPERATIONS:
            results = [zlib.crc32(run(operation, case)[1].tobytes()) for case in range(CASES)]
            print(json.dumps({"operation": operation, "crc32": results}), file=file)
