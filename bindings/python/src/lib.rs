//! The extension module `calmix._calmix`: plain functions and classes over arrays, which the Python code in `python/calmix`
//! wraps. Arrays are checked there; here they are contiguous, and the interpreter is released while Rust computes.

mod classifier;
mod error;
mod interrupt;
mod planner;

use pyo3::prelude::*;

/// The native part of calmix.
#[pymodule]
mod _calmix {
    #[pymodule_export]
    use crate::classifier::{Classifier, fit_classifier};

    #[pymodule_export]
    use crate::planner::Planner;

    /// The version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name of it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
