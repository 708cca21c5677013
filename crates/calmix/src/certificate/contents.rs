//! The content of the rows of a pool, hashed.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use anyhow::Result;
use calmix_formats::vectors::{VectorOptions, VectorSource};
use calmix_io::safe_path;
use calmix_io::shown::shown;

use super::digest::{sha256, sha256_of};
use crate::error::CliError;

/// Rows that are read at once.
const BLOCK_ROWS: usize = 4_096;

/// Returns the hash of the file of an image.
///
/// # Errors
/// If the id is not the path of a file below the folder, or the file cannot be read.
pub(crate) fn image_content(root: &Path, id: &str) -> Result<String> {
    if let Some(problem) = safe_path::why_unsafe_here(id) {
        return Err(CliError::invalid(format!("{} is not a name of an image: {problem}", shown(id))).into());
    }
    let path = root.join(id);
    safe_path::check(root, &path)?;
    let unreadable = |error| CliError::failed(format!("{}: cannot be read: {error}", shown(path.display())));
    Ok(File::open(&path).and_then(sha256_of).map_err(unreadable)?)
}

/// Returns the hash of each vector by its id, or by its number without ids: of its numbers as f32, the lowest byte first.
///
/// # Errors
/// If the vectors cannot be read, or two have the same id.
pub(crate) fn vector_contents(path: &Path, vector_column: Option<&str>) -> Result<HashMap<String, String>> {
    let options =
        VectorOptions { vector_column: vector_column.map(str::to_owned), ..VectorOptions::default() };
    let source = VectorSource::open(path, &options)?;
    let numbers = source.views() * source.width();
    let mut contents = HashMap::new();
    for block in source.unchecked_blocks(0, BLOCK_ROWS) {
        let block = block?;
        let mut ids = block.ids.unwrap_or_default().into_iter();
        for (row, vector) in (block.first..).zip(block.vectors.chunks_exact(numbers.max(1))) {
            let id = ids.next().unwrap_or_else(|| row.to_string());
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            if contents.insert(id.clone(), sha256(&bytes)).is_some() {
                let message = format!("{}: two vectors have the id {}", shown(path.display()), shown(&id));
                return Err(CliError::invalid(message).hint("give each vector an id of its own").into());
            }
        }
    }
    Ok(contents)
}
