//! The conformal test martingale of `calmix.Monitor`.

use calmix_core::rng::Seed;
use calmix_metrics::shift::martingale::TestMartingale;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::interop::{internal, invalid};

/// A test martingale with its state.
#[pyclass(module = "calmix._calmix")]
pub(crate) struct Martingale(TestMartingale);

#[pymethods]
impl Martingale {
    /// A martingale from its state.
    #[new]
    fn new(json: &[u8]) -> PyResult<Self> {
        let state: TestMartingale = serde_json::from_slice(json).map_err(invalid)?;
        if state.is_sound() { Ok(Self(state)) } else { Err(invalid("its numbers contradict each other")) }
    }

    /// A martingale before the first row.
    #[staticmethod]
    fn start(reference: PyReadonlyArray1<'_, f64>, seed: u64) -> PyResult<Self> {
        TestMartingale::new(reference.as_slice()?, Seed(seed)).map(Self).map_err(invalid)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let json = slf.borrow().to_json()?;
        let state = PyTuple::new(py, [PyBytes::new(py, json.as_bytes())])?;
        Ok((slf.get_type().into_any(), state))
    }

    /// Its state, as JSON.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(internal)
    }

    /// Bets on the rows of a batch.
    fn update(&mut self, scores: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        self.0.update(scores.as_slice()?).map_err(invalid)
    }

    /// Rows, batches, logarithm of the capital now and of the highest, and the row that raised the alarm.
    fn state(&self) -> (u64, u64, f64, f64, Option<u64>) {
        let state = &self.0;
        (state.rows(), state.batches(), state.ln_capital(), state.ln_highest(), state.alarm_row())
    }
}
