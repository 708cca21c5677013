//! The reasons why ONNX Runtime is not loaded, and how to install it.

use std::fmt;
use std::path::{Path, PathBuf};

/// The environment variable with the absolute path of the library.
pub const VARIABLE: &str = "ORT_DYLIB_PATH";

/// The oldest version with the functions that calmix calls.
const MIN_VERSION: &str = "1.22";

const INSTALL: &str = "`pip install onnxruntime` into the environment of calmix installs it, in a clone `cargo xtask setup`; or \
     set ORT_DYLIB_PATH=/absolute/path/of/libonnxruntime";

/// The reason why ONNX Runtime is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryProblem {
    #[error("ONNX Runtime, which runs the network, is not installed; {INSTALL}")]
    Missing,
    /// The path of `ORT_DYLIB_PATH` is not absolute.
    #[error("{VARIABLE}={} is not an absolute path; name the library from the root /", .0.display())]
    NotAbsolute(PathBuf),
    #[error("{} cannot be loaded as ONNX Runtime: {why}; {INSTALL}", .path.display())]
    Unusable { path: PathBuf, why: String },
    /// Another user could have written `place`, which is the file or a folder above it.
    #[error(
        "{} is not loaded, because {} {why}, so another user could have replaced it; install ONNX Runtime where only you or \
         root can write", .path.display(), .place.display()
    )]
    Untrusted { path: PathBuf, place: PathBuf, why: &'static str },
    #[error(
        "{} is ONNX Runtime {version}, but calmix needs {MIN_VERSION} or newer; `pip install --upgrade onnxruntime` into the \
         environment of calmix installs it", .path.display()
    )]
    TooOld { path: PathBuf, version: String },
}

/// Returns the error of a file that is not a usable library.
pub(super) fn unusable(path: &Path, why: &dyn fmt::Display) -> LibraryProblem {
    LibraryProblem::Unusable { path: path.to_owned(), why: why.to_string() }
}
