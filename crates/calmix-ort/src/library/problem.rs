//! Why ONNX Runtime is not loaded, and how to install it.

use std::fmt;
use std::path::{Path, PathBuf};

/// The environment variable with the absolute path of the library.
pub const VARIABLE: &str = "ORT_DYLIB_PATH";

/// The oldest version that has the functions that calmix calls.
const OLDEST: &str = "1.22";

/// How to install it.
const INSTALL: &str = "`pip install onnxruntime` into the environment of calmix installs it, in a clone `cargo xtask setup`; or \
     set ORT_DYLIB_PATH=/absolute/path/of/libonnxruntime";

/// Why ONNX Runtime is not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LibraryProblem {
    /// No place has one.
    Missing,
    /// The path of `ORT_DYLIB_PATH` is not absolute.
    NotAbsolute(PathBuf),
    /// It cannot be read or loaded.
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// Another user could have written it.
    Untrusted {
        /// The file.
        path: PathBuf,
        /// The file itself, or a folder above it.
        place: PathBuf,
        /// What is wrong with the place.
        why: &'static str,
    },
    /// It lacks functions that calmix calls.
    TooOld {
        /// The file.
        path: PathBuf,
        /// The version that it names.
        version: String,
    },
}

impl fmt::Display for LibraryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "ONNX Runtime, which runs the network, is not installed; {INSTALL}"),
            Self::NotAbsolute(path) => {
                write!(
                    f,
                    "{VARIABLE}={} is not an absolute path; name the library from the root /",
                    path.display()
                )
            }
            Self::Unusable { path, why } => {
                write!(f, "{} cannot be loaded as ONNX Runtime: {why}; {INSTALL}", path.display())
            }
            Self::Untrusted { path, place, why } => write!(
                f,
                "{} is not loaded, because {} {why}, so another user could have replaced it; install ONNX Runtime where only \
                 you or root can write",
                path.display(),
                place.display()
            ),
            Self::TooOld { path, version } => write!(
                f,
                "{} is ONNX Runtime {version}, but calmix needs {OLDEST} or newer; `pip install --upgrade onnxruntime` into the \
                 environment of calmix installs it",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LibraryProblem {}

/// The problem of a file that is not a usable library.
pub(super) fn unusable(path: &Path, why: &dyn fmt::Display) -> LibraryProblem {
    LibraryProblem::Unusable { path: path.to_owned(), why: why.to_string() }
}
