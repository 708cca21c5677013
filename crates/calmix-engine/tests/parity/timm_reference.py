"""Logits and features of a network of timm with random weights: `timm_reference.py NAME SIDE FOLDER` reads the images
of FOLDER/images.safetensors and writes weights.safetensors and outputs.safetensors beside them."""

import sys
from pathlib import Path

import timm
import torch
from safetensors.torch import load_file, save_file

name, side, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
torch.manual_seed(1)
torch.set_num_threads(1)
model = timm.create_model(name, num_classes=1000)
for layer in model.modules():
    if isinstance(layer, torch.nn.BatchNorm2d):
        # As after training: a layer that swaps mean and variance must be seen.
        torch.nn.init.normal_(layer.running_mean, std=0.1)
        torch.nn.init.uniform_(layer.running_var, 0.5, 2.0)
        torch.nn.init.uniform_(layer.weight, 0.5, 1.5)
        torch.nn.init.normal_(layer.bias, std=0.1)
model.eval()
pixels = load_file(folder / "images.safetensors")["images"]
images = ((pixels.double() / 255 - 0.5) / 0.5).float().permute(0, 3, 1, 2)
assert images.shape[2:] == (side, side)
with torch.no_grad():
    features = model.forward_head(model.forward_features(images), pre_logits=True)
    logits = model(images)
save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, folder / "weights.safetensors")
save_file({"logits": logits, "features": features}, folder / "outputs.safetensors")
