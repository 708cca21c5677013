//! Calibrators: fitted on logits and labels, applied to logits.

use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::calibrator::{Calibrator as AnyCalibrator, CalibratorKind};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use serde_json::Value;

use crate::interop::{classes_of, internal, invalid, matrix};

/// A fitted calibrator.
#[pyclass(frozen, module = "calmix._calmix")]
pub(crate) struct Calibrator(AnyCalibrator);

/// Fits a calibrator of a kind: `temperature`, `vector` or `isotonic`. A temperature minimises the NLL; if it is `penalised`, a
/// penalty keeps it near 1 while there are few labels, as in the models of calmix.
#[pyfunction]
pub(crate) fn fit_calibrator(
    py: Python<'_>,
    kind: &str,
    logits: PyReadonlyArray2<'_, f32>,
    labels: PyReadonlyArray1<'_, i64>,
    penalised: bool,
) -> PyResult<Calibrator> {
    let kind: CalibratorKind = serde_json::from_value(Value::from(kind)).map_err(invalid)?;
    let logits = matrix(&logits)?;
    let labels = classes_of(&labels)?;
    let fitted = py.detach(|| {
        if kind == CalibratorKind::Temperature && !penalised {
            let temperature = Temperature::fit(logits, &labels)?;
            return Ok(AnyCalibrator::Temperature { temperature });
        }
        AnyCalibrator::fit(kind, logits, &labels, &|| false)
    });
    Ok(Calibrator(fitted.map_err(|error: calmix_metrics::error::MetricsError| invalid(error))?))
}

#[pymethods]
impl Calibrator {
    /// A calibrator from what `__reduce__` returns.
    #[new]
    fn new(json: &[u8]) -> PyResult<Self> {
        Ok(Self(serde_json::from_slice(json).map_err(invalid)?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let json = serde_json::to_vec(&slf.get().0).map_err(internal)?;
        Ok((slf.get_type().into_any(), PyTuple::new(py, [PyBytes::new(py, &json)])?))
    }

    /// Its kind and numbers, as JSON.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(internal)
    }

    /// The calibrated probabilities of rows of logits.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        logits: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let logits = matrix(&logits)?;
        let probabilities = py.detach(|| self.0.probabilities(logits)).map_err(invalid)?;
        PyArray1::from_vec(py, probabilities).reshape([logits.rows(), logits.width()])
    }
}
