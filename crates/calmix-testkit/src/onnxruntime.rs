//! onnxruntime runs exported models.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::python::interpreter;

/// Runs a script with arguments; returns the JSON that it prints.
pub fn run(script: &Path, arguments: &[&Path]) -> Value {
    let output =
        Command::new(interpreter("onnx", "CALMIX_ONNX_PYTHON")).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The largest difference of each output of `model.onnx` from the examples beside it, and its metadata. onnx's own checker
/// accepts the file, or this panics.
pub fn compare(folder: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../calmix-onnx/tests/runtime/compare.py");
    run(&script, &[folder])
}

/// Asserts that an output differs by at most `most`.
#[track_caller]
pub fn is_near(found: &Value, output: &str, most: f64) {
    let difference = found["differences"][output].as_f64().unwrap();
    assert!(difference <= most, "{output}: {difference} is more than {most}: {found}");
}
