//! Reads an exported model before a runtime does. onnxruntime runs whatever a file contains: versions before 1.24 read weights
//! from any file that the model names, and a loop inside a model need not end. calmix writes neither.

use std::fs;
use std::path::{Path, PathBuf};

use calmix::io::safe_open;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::invalid;

/// Bytes of the longest protobuf message.
const MAX_BYTES: u64 = i32::MAX as u64;

/// The bytes of an exported model that has all its weights in it and no graph inside a node.
#[pyfunction]
pub(crate) fn read_onnx(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = py.detach(|| checked(&path)).map_err(invalid)?;
    Ok(PyBytes::new(py, &bytes))
}

fn checked(path: &Path) -> Result<Vec<u8>, String> {
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    // The user named this file; caches of downloaded models have links in the place of files.
    let resolved = fs::canonicalize(path).map_err(|error| at(&error))?;
    let bytes = safe_open::read(&resolved, MAX_BYTES).map_err(|error| error.to_string())?;
    check_model(&bytes).map_err(|problem| {
        at(&format!("{problem}; export the model again: calmix export RUN --to FOLDER"))
    })?;
    Ok(bytes)
}

// The numbers of the fields are those of onnx.proto. A message that occurs twice is one whose fields are those of both.

fn check_model(message: &[u8]) -> Result<(), String> {
    let mut has_graph = false;
    for field in Fields::of(message) {
        match field? {
            (7, Content::Bytes(graph)) => {
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
    for field in Fields::of(message) {
        match field? {
            (1, Content::Bytes(node)) => check_node(node)?,
            (5, Content::Bytes(tensor)) => check_tensor(tensor)?,
            (15, _) => return Err(foreign("sparse weights")),
            _ => {}
        }
    }
    Ok(())
}

fn check_node(message: &[u8]) -> Result<(), String> {
    for field in Fields::of(message) {
        if let (5, Content::Bytes(attribute)) = field? {
            check_attribute(attribute)?;
        }
    }
    Ok(())
}

fn check_attribute(message: &[u8]) -> Result<(), String> {
    for field in Fields::of(message) {
        match field? {
            (5 | 10, Content::Bytes(tensor)) => check_tensor(tensor)?,
            (6 | 11, _) => return Err(foreign("a graph inside a node")),
            (22 | 23, _) => return Err(foreign("sparse weights")),
            _ => {}
        }
    }
    Ok(())
}

fn check_tensor(message: &[u8]) -> Result<(), String> {
    for field in Fields::of(message) {
        match field? {
            (13, _) => return Err(foreign("weights in another file")),
            (14, Content::Number(place)) if place != 0 => return Err(foreign("weights in another file")),
            _ => {}
        }
    }
    Ok(())
}

fn foreign(what: &str) -> String {
    format!("calmix did not write this model: it has {what}")
}

fn damaged() -> String {
    "this is not an ONNX model, or its end is missing".to_owned()
}

/// What a field of a protobuf message contains.
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A number of a fixed length, which nothing here reads.
    Fixed,
}

/// The fields of a protobuf message with their numbers.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn field(&mut self) -> Option<(u32, Content<'a>)> {
        // Some readers drop the upper bits of a longer key, and would find another field.
        let key = u32::try_from(self.number()?).ok()?;
        let content = match key & 7 {
            0 => Content::Number(self.number()?),
            1 => self.bytes(8).map(|_| Content::Fixed)?,
            2 => {
                let length = self.number()?;
                Content::Bytes(self.bytes(length)?)
            }
            5 => self.bytes(4).map(|_| Content::Fixed)?,
            _ => return None,
        };
        Some((key >> 3, content))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Content<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            // Nothing can be read after a damaged field.
            self.rest = &[];
        }
        Some(field.ok_or_else(damaged))
    }
}
