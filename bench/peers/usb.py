"""RandAugment and cutout of USB (microsoft/Semi-supervised-learning), by Pillow."""

import random

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

AFFINE = Image.Transform.AFFINE
OPERATIONS = [
    (lambda i, v: ImageOps.autocontrast(i), 0, 1),
    (lambda i, v: ImageEnhance.Brightness(i).enhance(v), 0.05, 0.95),
    (lambda i, v: ImageEnhance.Color(i).enhance(v), 0.05, 0.95),
    (lambda i, v: ImageEnhance.Contrast(i).enhance(v), 0.05, 0.95),
    (lambda i, v: ImageOps.equalize(i), 0, 1),
    (lambda i, v: i, 0, 1),
    (lambda i, v: ImageOps.posterize(i, max(1, int(v))), 4, 8),
    (lambda i, v: i.rotate(v), -30, 30),
    (lambda i, v: ImageEnhance.Sharpness(i).enhance(v), 0.05, 0.95),
    (lambda i, v: i.transform(i.size, AFFINE, (1, v, 0, 0, 1, 0)), -0.3, 0.3),
    (lambda i, v: i.transform(i.size, AFFINE, (1, 0, 0, v, 1, 0)), -0.3, 0.3),
    (lambda i, v: ImageOps.solarize(i, v), 0, 256),
    (lambda i, v: i.transform(i.size, AFFINE, (1, 0, v * i.size[0], 0, 1, 0)), -0.3, 0.3),
    (lambda i, v: i.transform(i.size, AFFINE, (1, 0, 0, 0, 1, v * i.size[1])), -0.3, 0.3),
]


class RandAugment:
    def __call__(self, image):
        for operation, low, high in random.choices(OPERATIONS, k=3):
            image = operation(image, low + (high - low) * random.random())
        return cutout(image, random.random() * 0.5)


def cutout(image, share):
    if share <= 0:
        return image
    width, height = image.size
    side = share * width
    x, y = np.random.uniform(width), np.random.uniform(height)
    x, y = int(max(0, x - side / 2)), int(max(0, y - side / 2))
    image = image.copy()
    ImageDraw.Draw(image).rectangle((x, y, min(width, x + side), min(height, y + side)), (125, 123, 114))
    return image
