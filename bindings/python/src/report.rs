//! Report pages and their data as bytes, of predictions with labels or of run folders.

use std::path::PathBuf;

use calmix::io::class_names;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_report::page::html;
use calmix_report::report::RunsReport;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::interop::{classes_of, internal, invalid};

/// The page about the predictions of a model, whose logits these are.
#[pyfunction]
pub(crate) fn page_of_predictions(
    py: Python<'_>,
    name: &str,
    logits: PyReadonlyArray2<'_, f32>,
    labels: PyReadonlyArray1<'_, i64>,
    classes: Vec<String>,
) -> PyResult<String> {
    let labels = classes_of(&labels)?;
    if labels.is_empty() {
        return Err(invalid("there are no predictions to report on"));
    }
    // A page repeats them in every plot.
    class_names::check_all(&classes).map_err(|problem| invalid(format!("labels: {problem}")))?;
    let predictions = Predictions {
        step: 0,
        split: EvalSet::Test,
        model: EvalModel::Ema,
        classes,
        ids: (0..labels.len() as u64).collect(),
        labels,
        logits: logits.as_slice()?.to_vec(),
        groups: Vec::new(),
    };
    let report = py.detach(|| RunsReport::of_predictions(name, &predictions)).map_err(invalid)?;
    Ok(html(&report, None))
}

/// What a report says about a run, as JSON, and its page.
#[pyfunction]
pub(crate) fn report_of_run(py: Python<'_>, folder: PathBuf) -> PyResult<(String, String)> {
    let report = py.detach(|| RunsReport::read(&[folder], false)).map_err(invalid)?;
    let json = String::from_utf8(report.to_json().map_err(internal)?).map_err(internal)?;
    Ok((json, html(&report, None)))
}
