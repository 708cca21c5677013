"""Trains as PyTorch trains, from what the engine wrote down, and writes down what came out.

Reads the path of a folder a line, answers a line when its case is done. In the folder: `case.json`, the engine's
snapshot before the first step (`start.live`, `start.ema`, `start.momentum`) and `images.safetensors` (u8, one batch a
step).
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from networks import network
from step import Trainer


def replay(folder):
    case = json.loads((folder / "case.json").read_text())
    model = network(case["architecture"], case["first_block"], case["stride"], case["classes"])
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            if case["norm_momentum"] is not None:
                layer.momentum = case["norm_momentum"]
            if case["norm_eps"] is not None:
                layer.eps = case["norm_eps"]
    # As the engine has it. In another layout sums have another order, and an activation within rounding of zero falls
    # on the other side of the kink of ReLU: one of a million does, and changes a gradient by a thousandth.
    model = model.to(memory_format=torch.channels_last)
    images = load_file(folder / "images.safetensors")
    trainer = Trainer(model, case)
    trainer.restore(*(load_file(folder / f"start.{part}.safetensors") for part in ("live", "ema", "momentum")))
    metrics, seen = [], []
    for n, plan in enumerate(case["steps"]):
        views = {view: normalised(case, images[f"{view}.{n}"]) for view in ("x", "weak", "strong")}
        numbers, logits = trainer.step(views | {"labels": torch.tensor(plan["labels"])}, plan)
        metrics.append(numbers)
        seen.append(logits)
    model.eval()
    with torch.no_grad():
        looked = model(normalised(case, images["x.0"]))
    statistics = {name: buffer for name, buffer in model.named_buffers()}
    write(folder / "live.safetensors", model.state_dict())
    write(folder / "ema.safetensors", trainer.average | statistics)
    write(folder / "momentum.safetensors", trainer.momentum())
    logits = {"seen": torch.cat(seen), "looked": looked}
    write(folder / "logits.safetensors", logits)
    (folder / "metrics.json").write_text(json.dumps(metrics))


def normalised(case, pixels):
    mean, deviation = (torch.tensor(case[name], dtype=torch.float64) for name in ("mean", "deviation"))
    return ((pixels.double() / 255 - mean) / deviation).float().permute(0, 3, 1, 2)


def write(path, tensors):
    save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in sys.stdin:
        replay(Path(line.rstrip("\n")))
        print("done", flush=True)
