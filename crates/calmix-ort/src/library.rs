//! ONNX Runtime, loaded once per process from an absolute path that no other user can write.
//!
//! The places, of which the first that has a library is taken: `ORT_DYLIB_PATH`; the Python environment of the executable,
//! where `pip install onnxruntime` puts it; the cache that `cargo xtask setup` fills.

mod places;
mod problem;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ort::environment::Environment;

pub use problem::{LibraryProblem, VARIABLE};

use crate::error::OrtError;
use problem::unusable;

pub(crate) struct Runtime {
    /// Never dropped: ONNX Runtime has one environment per process, which cannot be made a second time.
    pub(crate) environment: Environment,
    path: PathBuf,
}

/// Loads ONNX Runtime, unless that has been done.
///
/// Call this before anything else of `ort`, which would otherwise look for a library by its bare name.
pub(crate) fn runtime() -> Result<&'static Runtime, OrtError> {
    static RUNTIME: OnceLock<Result<Runtime, LibraryProblem>> = OnceLock::new();
    match RUNTIME.get_or_init(load) {
        Ok(runtime) => Ok(runtime),
        Err(problem) => Err(problem.clone().into()),
    }
}

/// Returns the name and version of the runtime: `onnxruntime 1.31.1`. Its outputs may have other bits with another version.
///
/// # Errors
/// If it is missing, too old, or could have been replaced by another user.
pub fn version() -> Result<String, OrtError> {
    let runtime = runtime()?;
    if let Some(version) = places::version_in_name(&runtime.path) {
        return Ok(format!("onnxruntime {version}"));
    }
    // A library of the user's own, whose file name has no version.
    let commit = ort::info().split("git-commit-id=").nth(1);
    let commit: String = commit.unwrap_or_default().chars().take_while(char::is_ascii_alphanumeric).collect();
    Ok(format!("onnxruntime commit {}", if commit.is_empty() { "unknown" } else { &commit }))
}

/// Returns the file of the library, loading it if that has not been done.
pub fn path() -> Result<&'static Path, OrtError> {
    Ok(&runtime()?.path)
}

fn load() -> Result<Runtime, LibraryProblem> {
    let found = places::find()?.ok_or(LibraryProblem::Missing)?;
    // Links are resolved first, so that what is checked is what is loaded.
    let path = found.canonicalize().map_err(|error| unusable(&found, &error))?;
    trust::check(&path)?;
    let builder = ort::init_from(&path).map_err(|error| match error {
        ort::LoadDynamicError::BadVersion { version_str, path } => {
            LibraryProblem::TooOld { path, version: version_str }
        }
        ort::LoadDynamicError::Dlopen { error, .. } => unusable(&path, &error),
        _ => unusable(&path, &"it has no OrtGetApiBase"),
    })?;
    let environment = builder.with_name("calmix").with_telemetry(false).build();
    let environment = environment.map_err(|error| unusable(&path, &error.message()))?;
    Ok(Runtime { environment, path })
}
