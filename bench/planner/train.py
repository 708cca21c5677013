"""SoftMatch with CalibrateMix in plain PyTorch with `calmix.Planner`, on the labels of a run of `calmix train`.

    python train.py RUN DATASET

RUN is a finished run of the recipe `cpu-fashion-mnist`, which names the labelled images, the seed and the steps; DATASET is
the folder of Fashion-MNIST. Network, views, optimiser and average follow the recipe; what is drawn comes from NumPy, Python
and PyTorch. Prints one JSON object with error and ECE of the averaged model on the test images.
"""

import gzip
import json
import math
import pathlib
import random
import sys
import time
import tomllib

import numpy as np
import torch
from calmix import Planner, calibration
from PIL import Image
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "bench/peers"), str(ROOT / "crates/calmix-engine/tests/parity")]
from networks import network  # noqa: E402
from usb import RandAugment  # noqa: E402

BATCH, UNLABELLED, SIDE = 32, 128, 28
MEAN, DEVIATION = 0.2860, 0.3530
DECAY, RATE, WEIGHT_DECAY, NORM_MOMENTUM = 0.99, 0.03, 5e-4, 0.01
SETTINGS = {
    "method.base": "softmatch",
    "method.mixup.pairing": "calibratemix",
    "method.mixup.alpha": 0.4,
    "method.mixup.start.share": 0.09765625,
    "method.mixup.guidance.delta": 0.997,
    "method.mixup.guidance.fraction": 0.05,
}


def main():
    run, dataset = (pathlib.Path(argument) for argument in sys.argv[1:])
    recipe = tomllib.loads((run / "recipe.toml").read_text())["train"]
    steps, seed = recipe["steps"], recipe.get("seed", 0)
    split = json.loads((run / "split.json").read_text())
    images, labels = read(dataset, "train")
    labelled = np.array(split["labelled"])
    held_out = np.array(split["validation"])
    assert (np.bincount(labels[labelled]) == 25).all(), "25 labels per class"
    unlabelled = np.setdiff1d(np.arange(len(images)), held_out)

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    model = built()
    features = []
    model.fc.register_forward_pre_hook(lambda _, given: features.append(given[0].detach()))
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors}]
    optimiser = torch.optim.SGD(groups, lr=RATE, momentum=0.9, nesterov=True)
    average = {name: p.detach().clone() for name, p in model.named_parameters()}
    planner = Planner(10, labelled, unlabelled, steps=steps, seed=seed, settings=SETTINGS)
    of_labelled, of_unlabelled = shuffled(labelled), shuffled(unlabelled)
    strong = RandAugment()

    began = time.process_time()
    for step in range(steps):
        x_ids = np.array([next(of_labelled) for _ in range(BATCH)])
        u_ids = np.array([next(of_unlabelled) for _ in range(UNLABELLED)])
        x, u = tensor([weak(images[i]) for i in x_ids]), tensor([weak(images[i]) for i in u_ids])
        u_strong = tensor([strong(weak(images[i])) for i in u_ids])
        # Weak views are not part of the statistics of the recipe's `lean` step.
        with torch.no_grad(), statistics_kept(model):
            features.clear()
            logits = model(torch.cat([x, u]))
        of_x = {"labelled_logits": logits[:BATCH], "labelled_features": features[0][:BATCH]}
        of_u = {"unlabelled_logits": logits[BATCH:], "unlabelled_features": features[0][BATCH:]}
        plan = planner.plan(step, labelled_ids=x_ids, labels=labels[x_ids], unlabelled_ids=u_ids, **of_x, **of_u)
        both, share = torch.cat([x, u]), torch.from_numpy(plan.mix_lambda)[:, None, None, None]
        mixed = share * both[plan.first] + (1 - share) * both[plan.second]
        out = model(torch.cat([x, mixed, u_strong]))
        x_out, mixed_out, u_out = out.split([len(x), len(mixed), len(u_strong)])
        weight = planner.loss_weights
        loss = weight["labelled"] * F.cross_entropy(x_out, torch.from_numpy(labels[x_ids]))
        rows = F.cross_entropy(u_out, torch.from_numpy(plan.pseudo_labels), reduction="none")
        loss = loss + weight["unlabelled"] * (torch.from_numpy(plan.pseudo_weights) * rows).mean()
        rows = F.cross_entropy(mixed_out, torch.from_numpy(plan.targets), reduction="none")
        loss = loss + weight["mixup"] * (torch.from_numpy(plan.mix_weights) * rows).sum()
        for group in optimiser.param_groups:
            group["lr"] = RATE * math.cos(7 / 16 * math.pi * step / steps)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        planner.commit()
        with torch.no_grad():
            for name, p in model.named_parameters():
                average[name].lerp_(p, 1 - DECAY)
        if step % 100 == 99:
            print(f"step {step + 1}/{steps}, loss {loss.item():.3f}", file=sys.stderr)

    model.load_state_dict(average, strict=False)
    model.eval()
    images, labels = read(dataset, "t10k")
    with torch.no_grad():
        logits = torch.cat([model(tensor([picture(image) for image in part])) for part in np.split(images, 20)])
    result = {"seed": seed, "steps": steps, "cpu_seconds": round(time.process_time() - began)}
    for measure in ("error", "ece", "confidence_gap", "nll"):
        result[measure] = round(getattr(calibration, measure)(labels, logits=logits), 4)
    print(json.dumps(result))


def built():
    """WRN-10-1 with the engine's initial distribution."""
    model = network("wrn-10-1", "google", "3x3", 10)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.Linear):
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.BatchNorm2d):
            layer.momentum = NORM_MOMENTUM
    return model.train().to(memory_format=torch.channels_last)


class statistics_kept:
    """Passes meanwhile leave the running statistics of BatchNorm as they are."""

    def __init__(self, model):
        self.norms = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]

    def __enter__(self):
        for norm in self.norms:
            norm.track_running_stats = False

    def __exit__(self, *_):
        for norm in self.norms:
            norm.track_running_stats = True


def read(folder, part):
    """Images and labels in MNIST's format."""
    files = [gzip.open(folder / f"{part}-{name}-ubyte.gz").read() for name in ("images-idx3", "labels-idx1")]
    images = np.frombuffer(files[0], np.uint8, offset=16).reshape(-1, SIDE, SIDE)
    return images, np.frombuffer(files[1], np.uint8, offset=8).astype(np.int64)


def shuffled(ids):
    while True:
        yield from np.random.permutation(ids)


def picture(image):
    return Image.fromarray(image).convert("RGB")


def weak(image):
    """A shift by up to an eighth over reflected edges, and a flip."""
    margin = SIDE // 8
    top, left = random.randint(0, 2 * margin), random.randint(0, 2 * margin)
    moved = np.pad(image, margin, mode="reflect")[top : top + SIDE, left : left + SIDE]
    return picture(moved[:, ::-1] if random.random() < 0.5 else moved)


def tensor(pictures):
    pixels = torch.from_numpy(np.stack([np.asarray(each) for each in pictures]))
    return ((pixels.float() / 255 - MEAN) / DEVIATION).permute(0, 3, 1, 2)


main()
