//! The conversions between Python and Rust that all functions need: exceptions, labels, matrices, and signals during long work.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use calmix_core::matrix::{MatrixOf, Scalar};
use calmix_heads::HeadsError;
use numpy::{Element, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Converts an error of the caller.
pub(crate) fn invalid(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Converts an error of this package, not of its caller.
pub(crate) fn internal(error: impl Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Converts an error of a fit.
pub(crate) fn of_fit(error: &HeadsError) -> PyErr {
    match error {
        HeadsError::Stopped => PyKeyboardInterrupt::new_err("the fit was interrupted"),
        error => invalid(error),
    }
}

/// Converts labels to classes.
///
/// # Errors
/// If a label is negative, or too large for a class.
pub(crate) fn classes_of(labels: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<u32>> {
    let class = |(row, &label): (usize, &i64)| {
        u32::try_from(label).map_err(|_| invalid(format!("row {row}: {label} is not a class")))
    };
    labels.as_slice()?.iter().enumerate().map(class).collect()
}

/// The time between two checks of the interpreter for a signal.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` on a separate thread without the interpreter, and sets its argument when Python receives a signal.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let caller = thread::current();
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            let done = work(&stop);
            caller.unpark();
            done
        });
        let mut signal = Ok(());
        while !working.is_finished() {
            py.detach(|| thread::park_timeout(SIGNAL_POLL_INTERVAL));
            if signal.is_ok() {
                signal = py.check_signals();
                stop.store(signal.is_err(), Ordering::Relaxed);
            }
        }
        let done = working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        signal.map(|()| done)
    })
}

/// Views an array as rows.
pub(crate) fn matrix<'a, T: Scalar + Element>(
    array: &'a PyReadonlyArray2<'_, T>,
) -> PyResult<MatrixOf<'a, T>> {
    let (rows, width) = array.as_array().dim();
    MatrixOf::new(array.as_slice()?, rows, width).map_err(invalid)
}
