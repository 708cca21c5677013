"""Runs `model.onnx` of a folder by onnxruntime on one thread, and compares it with the examples beside it.

`compare.py FOLDER` prints a line of JSON: the largest difference of each output, and the number of nodes. The folder is in
ONNX's own layout: `test_data_set_0/input_0.pb`, `output_0.pb` and so on.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

folder = Path(sys.argv[1])
model = onnx.load(folder / "model.onnx")
onnx.checker.check_model(model, full_check=True)
onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(folder / "model.onnx", options)


def tensor(name):
    return numpy_helper.to_array(onnx.load_tensor(folder / "test_data_set_0" / name))


rows = tensor("input_0.pb")
[entrance] = session.get_inputs()
names = [output.name for output in session.get_outputs()]
batches = {}
for batch in [1, 7, 64]:
    found = [session.run(None, {entrance.name: rows[n : n + batch]}) for n in range(0, len(rows), batch)]
    batches[batch] = [np.concatenate(parts) for parts in zip(*found)]
differences = {}
for n, name in enumerate(names):
    wanted = tensor(f"output_{n}.pb")
    for found in (batches[batch][n] for batch in batches):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), (name, found.dtype, found.shape)
        most = np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()
        differences[name] = max(float(most), differences.get(name, 0.0))
metadata = {entry.key: entry.value for entry in model.metadata_props}
print(json.dumps({"differences": differences, "nodes": len(model.graph.node), "metadata": metadata}))
