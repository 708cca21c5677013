"""Predictions of images in PyTorch, as most scripts make them: `files|scaled COUNT FOLDER`.

A DataLoader with two workers opens the files with Pillow, resizes the shorter side and cuts out the middle; WRN-28-2 in
f32, channels-last, two threads; softmax, label and confidence. `scaled` lets libjpeg decode to a fraction of the size.
"""

import pathlib
import sys

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from step import WideResNet
from worker import serve

SIZE, BATCH, THREADS, WORKERS = 32, 64, 2, 2
MEAN, STD = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2471, 0.2435, 0.2616])


class Files(Dataset):
    def __init__(self, paths, scaled):
        self.paths, self.scaled = paths, scaled

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, n):
        with Image.open(self.paths[n]) as image:
            if self.scaled:
                image.draft("RGB", (SIZE, SIZE))
            image = image.convert("RGB")
        scale = SIZE / min(image.size)
        width, height = (max(SIZE, round(side * scale)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (width - SIZE) // 2, (height - SIZE) // 2
        pixels = np.asarray(image.crop((left, top, left + SIZE, top + SIZE)))
        return ((torch.tensor(pixels) / 255 - MEAN) / STD).permute(2, 0, 1)


def main():
    case, count, folder = sys.argv[1:]
    torch.set_num_threads(THREADS)
    found = sorted(path for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in [".jpg", ".png"])
    paths = [found[n % len(found)] for n in range(int(count))]
    network = WideResNet(28, 2, 10).eval().to(memory_format=torch.channels_last)
    # The workers stay from one repetition to the next, as within one long run.
    loader = DataLoader(Files(paths, case == "scaled"), BATCH, num_workers=WORKERS, persistent_workers=True)

    @torch.inference_mode()
    def repetition():
        total = 0.0
        for batch in loader:
            logits = network(batch.to(memory_format=torch.channels_last))
            logits = logits[0] if isinstance(logits, tuple) else logits
            confidence, _ = torch.softmax(logits, 1).max(1)
            total += float(confidence.sum())
        return total

    serve(repetition)


if __name__ == "__main__":
    main()
