//! Errors of the libraries as exceptions of Python.

use std::fmt::Display;

use calmix_heads::HeadsError;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};

/// What the caller passed is invalid.
pub(crate) fn invalid(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An error of this package, not of its caller.
pub(crate) fn internal(error: impl Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// An error of a fit.
pub(crate) fn of_fit(error: &HeadsError) -> PyErr {
    match error {
        HeadsError::Stopped => PyKeyboardInterrupt::new_err("the fit was interrupted"),
        error => invalid(error),
    }
}
