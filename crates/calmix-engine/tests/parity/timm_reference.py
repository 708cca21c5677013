"""What networks of timm say: `timm_reference.py FOLDER` answers the cases of FOLDER/cases.json, each in a folder of its
own. A case has images in images.safetensors, or names a folder of photos, which are then written there. It names a folder
of pretrained weights, or gets random ones, which are written to weights.safetensors. outputs.safetensors receives logits
and features."""

import json
import sys
from pathlib import Path

import numpy
import timm
import torch
from PIL import Image
from safetensors.torch import load_file, save_file


def model_of(case, folder):
    torch.manual_seed(1)
    model = timm.create_model(case["name"], num_classes=1000)
    if case["weights"] is not None:
        model.load_state_dict(load_file(Path(case["weights"]) / "model.safetensors"), strict=True)
    else:
        for layer in model.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                # As after training: a layer that swaps mean and variance must be seen.
                torch.nn.init.normal_(layer.running_mean, std=0.1)
                torch.nn.init.uniform_(layer.running_var, 0.5, 2.0)
                torch.nn.init.uniform_(layer.weight, 0.5, 1.5)
                torch.nn.init.normal_(layer.bias, std=0.1)
        weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
        save_file(weights, folder / "weights.safetensors")
    if case["stride"] == "1x1":
        # timm has no such ResNet-50, but its layers can be told.
        for block in model.modules():
            if isinstance(block, timm.models.resnet.Bottleneck):
                block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride
    return model.eval()


def photos(case):
    side = case["side"]
    files = sorted(Path(case["photos"]).glob("*/*"))
    views = [Image.open(file).convert("RGB").resize((side, side), Image.Resampling.BICUBIC) for file in files]
    return torch.from_numpy(numpy.stack([numpy.asarray(view) for view in views]))


@torch.no_grad()
def answer(case, folder):
    if case["photos"] is not None:
        save_file({"images": photos(case)}, folder / "images.safetensors")
    pixels = load_file(folder / "images.safetensors")["images"]
    assert pixels.shape[1:] == (case["side"], case["side"], 3)
    model = model_of(case, folder)
    mean, deviation = (torch.tensor(case[name], dtype=torch.float64) for name in ("mean", "deviation"))
    logits, features = [], []
    for batch in pixels.split(50):
        images = ((batch.double() / 255 - mean) / deviation).float().permute(0, 3, 1, 2)
        features.append(model.forward_head(model.forward_features(images), pre_logits=True))
        logits.append(model(images))
    save_file({"logits": torch.cat(logits), "features": torch.cat(features)}, folder / "outputs.safetensors")


torch.set_num_threads(1)
root = Path(sys.argv[1])
for n, case in enumerate(json.loads((root / "cases.json").read_text())):
    answer(case, root / str(n))
