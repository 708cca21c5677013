"""A weak and a strong view of each image as USB makes them: `decoded|jpeg SIZE COUNT FOLDER`.

USB (microsoft/Semi-supervised-learning) composes torchvision's transforms with a RandAugment of Pillow operations and
a cutout. Here as there, but for the last step: views end as arrays of bytes, not as normalised tensors.
"""

import pathlib
import random
import sys

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from torchvision import transforms

from worker import serve

torch.set_num_threads(1)

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


def views(size):
    flip = transforms.RandomHorizontalFlip()
    if size == 224:
        weak = [transforms.Resize((256, 256)), transforms.RandomCrop(224), flip]
        strong = [transforms.RandomResizedCrop(224), flip]
    else:
        weak = [transforms.Resize(size), transforms.RandomCrop(size, padding=size // 8, padding_mode="reflect"), flip]
        strong = weak
    return transforms.Compose(weak), transforms.Compose([*strong, RandAugment()])


def load(path):
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def chosen(folder, count):
    """`count` of the images, evenly spread; repeated from the first if there are fewer."""
    found = sorted(path for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in [".jpg", ".jpeg", ".png"])
    return [found[n * max(1, len(found) // count) % len(found)] for n in range(count)]


def main():
    match sys.argv[1:]:
        case ["decoded", size, count, folder]:
            sources, picture = [load(path) for path in chosen(folder, int(count))], lambda image: image
        case ["jpeg", size, count, folder]:
            sources, picture = chosen(folder, int(count)), load
        case other:
            sys.exit(f"the cases of data are `decoded|jpeg SIZE COUNT FOLDER`, not {other}")
    weak, strong = views(int(size))

    def repetition():
        result = []
        for source in sources:
            image = picture(source)
            result.append((np.asarray(weak(image)), np.asarray(strong(image))))
        return result

    serve(repetition)


main()
