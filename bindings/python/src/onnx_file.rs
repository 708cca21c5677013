//! Checks an exported model before a runtime reads it. onnxruntime runs whatever a file contains: versions before 1.24 read
//! weights from any file that the model names, and a loop in a model need not end. calmix writes neither.

use std::fs;
use std::path::{Path, PathBuf};

use calmix::io::protobuf::{Fields, Value};
use calmix::io::safe_open;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::interop::invalid;

/// The maximum size of a protobuf message in bytes.
const MAX_BYTES: u64 = i32::MAX as u64;

/// The bytes of an exported model that has all its weights in it and no graph inside a node.
#[pyfunction]
pub(crate) fn read_onnx(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = py.detach(|| checked(&path)).map_err(invalid)?;
    Ok(PyBytes::new(py, &bytes))
}

fn checked(path: &Path) -> Result<Vec<u8>, String> {
    let in_file = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    // The user named this file, so links are followed: caches of downloaded models consist of them.
    let resolved = fs::canonicalize(path).map_err(|error| in_file(&error))?;
    let bytes = safe_open::read(&resolved, MAX_BYTES).map_err(|error| error.to_string())?;
    check_model(&bytes).map_err(|problem| {
        in_file(&format!("{problem}; export the model again: calmix export RUN --to FOLDER"))
    })?;
    Ok(bytes)
}

// The field numbers are those of onnx.proto. The fields of a message that occurs twice are merged.

fn check_model(message: &[u8]) -> Result<(), String> {
    let mut has_graph = false;
    for field in fields(message) {
        match field? {
            (7, Value::Bytes(graph)) => {
                has_graph = true;
                check_graph(graph)?;
            }
            (20 | 25, _) => return Err(foreign("functions of its own")),
            _ => {}
        }
    }
    if has_graph { Ok(()) } else { Err(damaged()) }
}

fn check_graph(message: &[u8]) -> Result<(), String> {
    for field in fields(message) {
        match field? {
            (1, Value::Bytes(node)) => check_node(node)?,
            (5, Value::Bytes(tensor)) => check_tensor(tensor)?,
            (15, _) => return Err(foreign("sparse weights")),
            _ => {}
        }
    }
    Ok(())
}

fn check_node(message: &[u8]) -> Result<(), String> {
    for field in fields(message) {
        if let (5, Value::Bytes(attribute)) = field? {
            check_attribute(attribute)?;
        }
    }
    Ok(())
}

fn check_attribute(message: &[u8]) -> Result<(), String> {
    for field in fields(message) {
        match field? {
            (5 | 10, Value::Bytes(tensor)) => check_tensor(tensor)?,
            (6 | 11, _) => return Err(foreign("a graph inside a node")),
            (22 | 23, _) => return Err(foreign("sparse weights")),
            _ => {}
        }
    }
    Ok(())
}

fn check_tensor(message: &[u8]) -> Result<(), String> {
    for field in fields(message) {
        match field? {
            (13, _) => return Err(foreign("weights in another file")),
            (14, Value::Varint(place)) if place != 0 => return Err(foreign("weights in another file")),
            _ => {}
        }
    }
    Ok(())
}

/// Iterates over the fields of a message. The parser is strict: if it accepted a long key or integer, of which others drop the
/// upper bits, they would see another field than this check.
fn fields(message: &[u8]) -> impl Iterator<Item = Result<(u32, Value<'_>), String>> {
    Fields::new(message).map(|field| field.map(|field| (field.number, field.value)).map_err(|_| damaged()))
}

fn foreign(what: &str) -> String {
    format!("calmix did not write this model: it has {what}")
}

fn damaged() -> String {
    "this is not an ONNX model, or its end is missing".to_owned()
}
