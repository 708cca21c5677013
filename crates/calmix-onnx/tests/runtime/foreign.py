"""Makes three small models as other programs export them, and compares the encoders that calmix makes of them.

`foreign.py make FOLDER` writes `nchw.onnx` with `nchw.onnx_data`, `nhwc.onnx`, `tokens.onnx` and images, `images.bin`.
`foreign.py compare FOLDER` runs each beside `NAME.encoder.onnx` and prints a line of JSON: the largest difference of the
features, relative to the largest feature. It also runs `NAME.head.onnx`, and writes the features of `nchw.onnx`, rounded to half precision.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

SIDE, ROWS = 16, 9
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
random = np.random.default_rng(3)


def weights(name, *shape, dtype=np.float32):
    numbers = random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
    return numpy_helper.from_array(numbers.astype(dtype), name)


def save(folder, name, opset, image, outputs, nodes, constants, ir_version=8, **how):
    graph = helper.make_graph(nodes, name, [image], outputs, constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / f"{name}.onnx", **how)


def make(folder):
    value, node, single, half = helper.make_tensor_value_info, helper.make_node, TensorProto.FLOAT, TensorProto.FLOAT16
    nodes = [
        node("Conv", ["pixel_values", "/conv.weight"], ["/conv/output"], name="/conv", strides=[2, 2]),
        node("Constant", [], ["slope"], value=numpy_helper.from_array(np.array([0.1], np.float32))),
        node("PRelu", ["/conv/output", "slope"], ["map"]),
        node("ReduceMax", ["map", "axes"], ["unused"], keepdims=0),
    ]
    constants = [weights("/conv.weight", 24, 3, 4, 4), numpy_helper.from_array(np.array([2, 3]), "axes")]
    outputs = [value("map", single, ["batch", 24, 7, 7]), value("unused", single, ["batch", 24])]
    image = value("pixel_values", single, ["batch", 3, "height", "width"])
    external = {"save_as_external_data": True, "location": "nchw.onnx_data", "size_threshold": 1000}
    save(folder, "nchw", 18, image, outputs, nodes, constants, **external)

    nodes = [
        node("Reshape", ["input_1", "shape"], ["pixels"]),
        node("Gemm", ["pixels", "kernel", "bias"], ["dense"], transB=1),
        node("Tanh", ["dense"], ["embedding"]),
    ]
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [1, -1])
    bias = helper.make_tensor("bias", single, [12], random.normal(size=12))
    constants = [weights("kernel", 12, SIDE * SIDE * 3), bias, shape]
    image = value("input_1", single, [1, SIDE, SIDE, 3])
    save(folder, "nhwc", 13, image, [value("embedding", single, [1, 12])], nodes, constants)

    nodes = [
        node("Conv", ["pixel_values", "patches"], ["patch_map"], strides=[4, 4]),
        node("Reshape", ["patch_map", "columns"], ["patch_columns"]),
        node("Transpose", ["patch_columns"], ["embedded"], perm=[0, 2, 1]),
        node("LayerNormalization", ["embedded", "scale"], ["normed"], axis=-1),
        node("MatMul", ["normed", "dense"], ["mixed"]),
        node("Gelu", ["mixed"], ["last_hidden_state"], approximate="tanh"),
    ]
    scale = helper.make_tensor("scale", half, [32], random.normal(size=32).astype(np.float16))
    columns = numpy_helper.from_array(np.array([0, 32, 16]), "columns")
    constants = [weights("patches", 32, 3, 4, 4, dtype=np.float16), columns, scale]
    constants.append(weights("dense", 32, 32, dtype=np.float16))
    image = value("pixel_values", half, ["batch", 3, SIDE, SIDE])
    outputs = [value("last_hidden_state", half, ["batch", 16, 32])]
    save(folder, "tokens", 20, image, outputs, nodes, constants, ir_version=10)
    images = random.integers(0, 256, size=(ROWS, SIDE, SIDE, 3), dtype=np.uint8)
    (folder / "images.bin").write_bytes(images.tobytes())


def compare(folder):
    images = np.frombuffer((folder / "images.bin").read_bytes(), np.uint8).reshape(ROWS, SIDE, SIDE, 3)
    pixels = (images / 255 - MEAN) / STD
    channels = pixels.transpose(0, 3, 1, 2)
    cases = {
        "nchw": ("nchw", channels.astype(np.float32), "map", lambda x: x.mean((2, 3))),
        "nhwc": ("nhwc", pixels.astype(np.float32), "embedding", lambda x: x),
        "tokens": ("tokens", channels.astype(np.float16), "last_hidden_state", lambda x: x[:, 0]),
        "mean": ("tokens", channels.astype(np.float16), "last_hidden_state", lambda x: x.mean(1)),
    }
    differences = {}
    for name, (model, given, output, pooled) in cases.items():
        original = onnxruntime.InferenceSession(folder / f"{model}.onnx")
        encoder_file = folder / f"{name}.encoder.onnx"
        onnx.checker.check_model(encoder_file, full_check=True)
        encoder = onnxruntime.InferenceSession(encoder_file)
        batch = 1 if name == "nhwc" else 4
        [entrance] = original.get_inputs()
        parts, found = [], []
        for n in range(0, ROWS, batch):
            [part] = original.run([output], {entrance.name: given[n : n + batch]})
            parts.append(pooled(part.astype(np.float64)))
            found.append(encoder.run(["features"], {"images": images[n : n + batch]})[0])
        wanted, found = np.concatenate(parts), np.concatenate(found)
        assert (found.dtype, found.shape) == (np.float32, wanted.shape), (name, found.dtype, found.shape)
        assert np.abs(wanted).max() > 0.1
        differences[name] = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        if name == "nchw":
            rounded = found.astype(np.float16).astype(np.float32)
            (folder / "features.bin").write_bytes(rounded.tobytes())
    for name, batch in {"nchw": 4, "nhwc": 1, "tokens": 4}.items():
        head_file = folder / f"{name}.head.onnx"
        onnx.checker.check_model(head_file, full_check=True)
        session = onnxruntime.InferenceSession(head_file)
        names = [output.name for output in session.get_outputs()]
        assert names == ["logits", "probabilities", "label", "confidence", "set", "abstain"], names
        found = session.run(["probabilities"], {"images": images[:batch]})[0]
        assert found.shape[0] == batch and np.allclose(found.sum(1), 1), found
    print(json.dumps({"differences": differences}))


command, folder = sys.argv[1:]
{"make": make, "compare": compare}[command](Path(folder))
