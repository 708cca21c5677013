//! The hash by which a run knows its pretrained weights again.

use std::path::Path;

use calmix_io::error::{FileError, FileProblem};

use crate::error::LifecycleError;

/// Refuses a file with another hash than the one that the recipe names.
///
/// # Errors
/// If it has.
pub fn check_hash(path: &Path, hash: &str, wanted: &str) -> Result<(), LifecycleError> {
    if wanted.is_empty() || wanted == hash {
        return Ok(());
    }
    let problem =
        format!("its BLAKE3 hash is {hash}, but network.weights_hash is {wanted}: this is a different file");
    Err(LifecycleError::pretrained(FileError::new(path, FileProblem::Changed(problem))))
}
