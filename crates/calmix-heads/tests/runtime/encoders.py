"""Writes encoders with random weights, as people export them, and the features that PyTorch computes: encoders.py FOLDER

Needs torch, timm 1.0.30, transformers and onnxscript. Each folder has a model, a configuration, `images.npy` (bytes) and an array for
each output, by its name.
"""

import json
import sys
from pathlib import Path

import numpy as np
import timm
import torch
import transformers

IMAGES = 5
SIDE = 224


class Encoder(torch.nn.Module):
    def __init__(self, model, outputs):
        super().__init__()
        self.model = model
        self.outputs = outputs

    def forward(self, pixel_values):
        if self.outputs == ["features"]:
            return self.model(pixel_values)
        found = self.model(pixel_values=pixel_values)
        return tuple(found[name] for name in self.outputs)


def export(encoder, path, dynamo):
    images = torch.randn(2, 3, SIDE, SIDE)
    names = {"input_names": ["pixel_values"], "output_names": encoder.outputs}
    if dynamo:
        rows = ({0: torch.export.Dim.DYNAMIC},)
        torch.onnx.export(encoder, (images,), path, dynamo=True, dynamic_shapes=rows, external_data=True, **names)
    else:
        axes = {name: {0: "batch"} for name in ["pixel_values", *encoder.outputs]}
        torch.onnx.export(encoder, (images,), path, dynamo=False, opset_version=17, dynamic_axes=axes, **names)


def write(folder, name, model, outputs, config, dynamo=False, place="model.onnx"):
    folder = folder / name
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    encoder = Encoder(model, outputs).eval()
    with torch.no_grad():
        export(encoder, str(path), dynamo)
    mean = config.get("image_mean") or config["pretrained_cfg"]["mean"]
    std = config.get("image_std") or config["pretrained_cfg"]["std"]
    file = "preprocessor_config.json" if "image_mean" in config else "config.json"
    (folder / file).write_text(json.dumps(config))
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, SIDE, SIDE, 3), dtype=np.uint8)
    np.save(folder / "images.npy", images)
    pixels = (torch.from_numpy(images).float() / 255 - torch.tensor(mean)) / torch.tensor(std)
    with torch.no_grad():
        found = encoder(pixels.permute(0, 3, 1, 2).contiguous())
    for output, values in zip(outputs, found if isinstance(found, tuple) else (found,)):
        np.save(folder / f"{output}.npy", values.numpy())
    print(name, path.stat().st_size >> 20, "MB")


def main():
    folder = Path(sys.argv[1])
    torch.manual_seed(0)
    half = [0.5, 0.5, 0.5]
    imagenet = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3, "rescale_factor": 1 / 255}
    of_timm = {"architecture": "vit_small_patch16_224", "pretrained_cfg": {
        "input_size": [3, SIDE, SIDE], "interpolation": "bicubic", "crop_pct": 0.9, "mean": half, "std": half}}
    both = ["last_hidden_state", "pooler_output"]
    vit = timm.create_model("vit_small_patch16_224", num_classes=0)
    write(folder, "timm-vit-s", vit, ["features"], of_timm)
    write(folder, "timm-vit-s-dynamo", vit, ["features"], of_timm, dynamo=True)
    settings = transformers.Dinov2Config(hidden_size=384, num_attention_heads=6, image_size=518, patch_size=14)
    crop = {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE}}
    write(folder, "dinov2-s14", transformers.Dinov2Model(settings), both, imagenet | crop, place="onnx/model.onnx")
    siglip = transformers.SiglipVisionModel(transformers.SiglipVisionConfig())
    square = {"image_mean": half, "image_std": half, "resample": 3, "size": {"height": SIDE, "width": SIDE}}
    write(folder, "siglip-base", siglip, both, square)
    convnext = transformers.ConvNextModel(transformers.ConvNextConfig())
    crop = {"size": {"shortest_edge": SIDE}, "crop_pct": 0.875}
    write(folder, "convnext-tiny", convnext, both, imagenet | crop)
    write(folder, "convnext-tiny-dynamo", convnext, both, imagenet | crop, dynamo=True)


main()
