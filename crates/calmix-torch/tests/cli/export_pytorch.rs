//! The files of `calmix export` for PyTorch: the module computes the logits of the graph, and `torch.export` takes it.

use std::fs;
use std::process::Command;

use calmix_testkit::npy_file;
use calmix_testkit::onnxruntime::{compare, run};
use calmix_testkit::workspace::Workspace;

use super::fixture::Fixture;
use super::report::python;
use crate::program::new_workspace;

/// The example beside a graph as JSON: its input and its logits.
const EXAMPLE: &str = "
import json, sys
from pathlib import Path
import onnx
from onnx import numpy_helper
folder = Path(sys.argv[1]) / 'test_data_set_0'
both = [numpy_helper.to_array(onnx.load_tensor(folder / name)) for name in ['input_0.pb', 'output_0.pb']]
print(json.dumps([{'type': str(array.dtype), 'rows': array.tolist()} for array in both]))
";

/// Applies `model.py` to an example; fails if a logit is off.
const MODULE: &str = "
import importlib.util, json, sys
import torch
folder, example = sys.argv[1:]
spec = importlib.util.spec_from_file_location('exported', folder + '/model.py')
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
model = module.Model(folder)
rows, wanted = [torch.tensor(part['rows'], dtype=getattr(torch, part['type'])) for part in json.load(open(example))]
traced = torch.export.export(model, (rows,)).module()
for found in [model(rows), traced(rows)]:
    off = (found - wanted).abs().max().item()
    assert off <= 1e-4, off
if rows.dtype == torch.float32:
    # The squares of these numbers are infinite.
    off = (model(rows * 1e25) - model(rows * 1e9)).abs().max().item()
    assert off <= 1e-4, off
print('same', off)
";

/// Exports a run and compares its module with its graph.
fn check(workspace: &Workspace, run_folder: &str) {
    workspace.run(&["export", run_folder, "--to", "out"]).with_code(0);
    let script = workspace.path("example.py");
    fs::write(&script, EXAMPLE).unwrap();
    let example = workspace.path("example.json");
    fs::write(&example, run(&script, &[&workspace.path("out")]).to_string()).unwrap();
    let module = fs::read_to_string(workspace.path("out/model.py")).unwrap();
    assert!(module.lines().count() < 80, "{module}");
    let mut command = Command::new(python());
    command.args(["-c", MODULE]).arg(workspace.path("out")).arg(&example);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Forty vectors of six numbers around two places, ten of them with a label.
fn write_vectors(workspace: &Workspace) {
    let mut bytes = npy_file::header("<f4", &[40, 6]);
    for row in 0..40_u16 {
        let place = f32::from(row % 2);
        let numbers = (0..6_u16).map(|n| place + f32::from((row * 7 + n * 5) % 11) / 11.0);
        bytes.extend(numbers.flat_map(f32::to_le_bytes));
    }
    fs::write(workspace.path("vectors.npy"), bytes).unwrap();
    let labels: Vec<String> = (0..10).map(|row| format!("{row},{}\n", ["cat", "dog"][row % 2])).collect();
    fs::write(workspace.path("labels.csv"), format!("id,label\n{}", labels.concat())).unwrap();
}

#[test]
fn module_of_a_head_on_vectors_has_the_logits_of_the_graph() {
    let workspace = new_workspace();
    write_vectors(&workspace);
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run"];
    workspace.run(&train).with_code(0);
    check(&workspace, "run");
    compare(&workspace.path("out"));
}

#[test]
fn module_of_a_network_has_the_logits_of_the_graph() {
    check(&Fixture::Photos.copy(), "run");
}
