//! ONNX Runtime, loaded once per process, from an absolute path that no other user can write.
//!
//! The first library found is used: `ORT_DYLIB_PATH`; the Python environment of the executable, where `pip install onnxruntime`
//! puts it; the cache that `cargo xtask setup` fills.

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
    /// Never dropped: ONNX Runtime has one environment per process, which cannot be created again.
    pub(crate) environment: Environment,
    path: PathBuf,
}

/// Loads ONNX Runtime, unless it is loaded already.
///
/// Must be called before any other function of `ort`, which would otherwise search for a library by its bare name.
pub(crate) fn runtime() -> Result<&'static Runtime, OrtError> {
    static RUNTIME: OnceLock<Result<Runtime, LibraryProblem>> = OnceLock::new();
    match RUNTIME.get_or_init(load) {
        Ok(runtime) => Ok(runtime),
        Err(problem) => Err(problem.clone().into()),
    }
}

/// Returns the name and version of the runtime, such as `onnxruntime 1.31.1`. With another version, the last bits of outputs may
/// differ.
///
/// # Errors
/// If it is missing, too old, or could have been replaced by another user.
pub fn version() -> Result<String, OrtError> {
    let runtime = runtime()?;
    if let Some(version) = places::version_in_name(&runtime.path) {
        return Ok(format!("onnxruntime {version}"));
    }
    // The file name of the user's own library has no version.
    let commit = ort::info().split("git-commit-id=").nth(1);
    let commit: String = commit.unwrap_or_default().chars().take_while(char::is_ascii_alphanumeric).collect();
    Ok(format!("onnxruntime commit {}", if commit.is_empty() { "unknown" } else { &commit }))
}

/// Returns the path of the library, loading it first if necessary.
pub fn path() -> Result<&'static Path, OrtError> {
    Ok(&runtime()?.path)
}

fn load() -> Result<Runtime, LibraryProblem> {
    let found = places::find()?.ok_or(LibraryProblem::Missing)?;
    // Resolve links first, so that the file that is checked is the one that is loaded.
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
