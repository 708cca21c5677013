"""A weak and a strong view of each image as USB makes them: `decoded|jpeg SIZE COUNT FOLDER`.

USB (microsoft/Semi-supervised-learning) composes torchvision's transforms with a RandAugment of Pillow operations and
a cutout. Here as there, but for the last step: views end as arrays of bytes, not as normalised tensors.
"""

import pathlib
import sys

import numpy as np
import torch
from PIL import Image
from torchvision import transforms

from usb import RandAugment
from worker import serve

torch.set_num_threads(1)


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
