//! A classifier of vectors: training and prediction, by the code of `calmix train --features` and `calmix predict`.

use std::sync::atomic::{AtomicBool, Ordering};

use calmix::io::class_names;
use calmix::model::options::ModelOptions;
use calmix::predict::guarantee::Guarantee;
use calmix::predict::other_mix::{EstimatedMix, OtherMix, ProbabilitySample, check_shares};
use calmix::predict::prediction_rule::{Prediction, PredictionRule};
use calmix::predict::shift_check::ShiftCheck;
use calmix_head::fit::{FittedHead, HeadFit};
use calmix_head::model::HeadModel;
use calmix_heads::vector_classifier::{Drawn, LabelledVectors, VectorClassifier, recipe};
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::fitted_calibrator::{Fitted, Uncalibrated};
use calmix_metrics::held_out::SetRule;
use calmix_metrics::shift::ShiftDetector;
use calmix_metrics::shift::detector::STRANGENESS_LEVEL;
use calmix_recipe::Layers;
use calmix_run::model_info::ModelInfo;
use calmix_run::result::HeadName;
use calmix_run::tensor_files::head_files::{head_bytes, projection_bytes, read_head, read_projection};
use calmix_run::tensor_files::reference_file;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use serde_json::{Value, json};

use crate::interop::{internal, interruptible, invalid, matrix, of_fit};

/// The number of vectors that are predicted between two checks for a signal.
const BLOCK_ROWS: usize = 4_096;
/// The label of a sample without one.
const UNLABELLED: i64 = -1;

/// A trained classifier.
#[pyclass(frozen, module = "calmix._calmix")]
pub(crate) struct Classifier {
    model: HeadModel,
    /// The same with less arithmetic, as `calmix predict` has it.
    folded: HeadModel,
    info: ModelInfo,
    /// The bytes of its reference, if it has one.
    reference: Option<Vec<u8>>,
    check: Option<ShiftCheck>,
}

/// Trains a classifier. `vectors` has `views` vectors in each row, `labels` the number of a class or −1, `groups` the number
/// of a group for each row or nothing at all, `drawn` how each label was drawn or nothing at all, `weights` the weight of each label or
/// nothing at all, `sets` the widths of several sets of features that a vector consists of or nothing at all, and `settings` are keys
/// of a recipe with their values. Returns it with a description of the fit as JSON, and the out-of-fold predictions: the rows of `vectors`, and their calibrated probabilities.
#[pyfunction]
#[pyo3(signature = (vectors, views, labels, classes, groups, drawn, weights, sets, settings, threads))]
#[expect(clippy::type_complexity, reason = "a tuple of arrays is what Python unpacks")]
#[expect(clippy::too_many_arguments, reason = "Python passes them from one place")]
pub(crate) fn fit_classifier<'py>(
    py: Python<'py>,
    vectors: PyReadonlyArray2<'py, f32>,
    views: usize,
    labels: PyReadonlyArray1<'py, i64>,
    classes: Vec<String>,
    groups: PyReadonlyArray1<'py, u32>,
    drawn: Vec<String>,
    weights: PyReadonlyArray1<'py, f64>,
    sets: Vec<usize>,
    settings: Vec<(String, String)>,
    threads: usize,
) -> PyResult<(Classifier, String, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray2<f32>>)> {
    class_names::check_all(&classes).map_err(|problem| invalid(format!("y: {problem}")))?;
    let vectors = matrix(&vectors)?;
    let labels: Vec<Option<u32>> = labels.as_slice()?.iter().map(|&label| class(label)).collect();
    let mut layers = Layers::new().recipe("vectors");
    for (key, value) in settings {
        layers = layers.set(&format!("{key}={value}"));
    }
    let recipe = recipe(layers, views).map_err(|error| of_fit(&error))?;
    let groups = groups.as_slice()?;
    let parsed = |(row, word): (usize, &String)| {
        Drawn::parse(word).map_err(|problem| invalid(format!("drawn, row {row}: {problem}")))
    };
    let drawn = drawn.iter().enumerate().map(parsed).collect::<PyResult<Vec<Drawn>>>()?;
    let weights = weights.as_slice()?;
    let samples = LabelledVectors {
        vectors,
        views,
        labels: &labels,
        classes: &classes,
        groups,
        drawn: &drawn,
        weights,
        sets: &sets,
    };
    let fitted = interruptible(py, |stop| VectorClassifier::fit(samples, &recipe, threads, stop))?;
    let VectorClassifier { model, info, reference, fit, rows, .. } =
        fitted.map_err(|error| of_fit(&error))?;
    let (ids, probabilities) = interruptible(py, |stop| out_of_fold(&fit, stop))??;
    let ids: Vec<u64> = ids.iter().map(|&id| rows[id as usize] as u64).collect();
    let width = info.classes.len();
    let description = describe(&fit).to_string();
    let count = ids.len();
    let probabilities = PyArray1::from_vec(py, probabilities).reshape([count, width])?;
    Ok((Classifier::of(model, info, reference)?, description, PyArray1::from_vec(py, ids), probabilities))
}

#[pymethods]
impl Classifier {
    /// A classifier from what `__reduce__` returns.
    #[new]
    #[pyo3(signature = (info, head, projection, reference=None))]
    fn new(info: &[u8], head: &[u8], projection: &[u8], reference: Option<Vec<u8>>) -> PyResult<Self> {
        let info: ModelInfo = serde_json::from_slice(info).map_err(invalid)?;
        let Some(below) = info.head.as_ref() else {
            return Err(PyValueError::new_err("not a classifier of vectors"));
        };
        let features = below.features as usize;
        let projection = read_projection(projection, features, below.dimensions as usize).map_err(invalid)?;
        let head = read_head(head, below.shape(info.classes.len())).map_err(invalid)?;
        Self::of(HeadModel::new(projection, head).map_err(invalid)?, info, reference)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let Self { model, info, reference, .. } = slf.get();
        let info = serde_json::to_vec(info).map_err(internal)?;
        let head = head_bytes(model.head()).map_err(internal)?;
        let projection = projection_bytes(model.projection()).map_err(internal)?;
        let state = [Some(info), Some(head), Some(projection), reference.clone()];
        let state = state.map(|bytes| bytes.map(|bytes| PyBytes::new(py, &bytes)));
        Ok((slf.get_type().into_any(), PyTuple::new(py, state)?))
    }

    /// The logits of vectors, before calibration.
    fn logits<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let numbers = vectors.as_slice()?;
        let logits = self.by_block(py, numbers, |block| self.folded.logits(block).map_err(invalid))?;
        self.table(py, logits)
    }

    /// The calibrated probabilities of vectors.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray2<'py, f32>,
        mix: Option<Vec<f64>>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let (_, predictions) = self.predict(py, &vectors, ModelOptions::default(), mix, threads)?;
        let probabilities = predictions.into_iter().flat_map(|prediction| prediction.probabilities).collect();
        self.table(py, probabilities)
    }

    /// Which classes are in the prediction set of each vector, and why the coverage is not guaranteed, if it is not. Without
    /// held-out labels, all are.
    fn sets<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray2<'py, f32>,
        coverage: f64,
        rule: &str,
        mix: Option<Vec<f64>>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray2<bool>>, Option<String>)> {
        let sets: SetRule = serde_json::from_value(Value::from(rule)).map_err(invalid)?;
        let options = ModelOptions { coverage, sets, ..ModelOptions::default() };
        let (guarantee, predictions) = self.predict(py, &vectors, options, mix, threads)?;
        let classes = self.info.classes.len();
        let mut members = vec![false; predictions.len() * classes];
        for (members, prediction) in members.chunks_exact_mut(classes.max(1)).zip(&predictions) {
            match &prediction.set {
                Some(set) => set.iter().for_each(|&class| members[class as usize] = true),
                None => members.fill(true),
            }
        }
        Ok((self.table(py, members)?, guarantee.missing_sets()))
    }

    /// The estimated mix of the classes among vectors as JSON: `shares`, `intervals`, whether they differ from those of the labels, and
    /// whether the vectors are otherwise like those of training; `None` if that cannot be tested.
    fn estimate_mix(&self, py: Python<'_>, vectors: PyReadonlyArray2<'_, f32>) -> PyResult<String> {
        let (check, detector) = self.detector()?;
        let numbers = vectors.as_slice()?;
        let rule = PredictionRule::new(self.info.clone(), &ModelOptions::default()).map_err(invalid)?;
        let classes = self.info.classes.len().max(1);
        let rows = self.by_block(py, numbers, |block| {
            let logits = self.folded.logits(block).map_err(invalid)?;
            let probabilities = rule.calibrated(&logits).map_err(invalid)?;
            let mut observed = check.observe(block).map_err(invalid)?.into_iter();
            let rows = probabilities.chunks_exact(classes);
            Ok(rows.map(|row| (row.to_vec(), observed.next().unwrap_or_default())).collect())
        })?;
        let mut sums = detector.new_sums();
        let mut sample = ProbabilitySample::new(classes);
        for (probabilities, observed) in &rows {
            sums.add("", observed, probabilities);
            sample.add(probabilities);
        }
        let EstimatedMix { mix, is_other } =
            sample.estimate(detector, detector.mix(&sums, None)).map_err(invalid)?;
        let tests = detector.tests(&sums, None).ok();
        let is_explained = tests.map(|tests| tests.strangeness > STRANGENESS_LEVEL);
        let found = json!({
            "shares": mix.shares,
            "intervals": mix.intervals,
            "differs": is_other,
            "is_explained": is_explained,
        });
        Ok(found.to_string())
    }

    /// The predicted class of each vector, whether the model abstains from it, and why it always abstains, if it does.
    #[expect(clippy::type_complexity, reason = "a tuple of arrays is what Python unpacks")]
    fn answers<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray2<'py, f32>,
        precision: f64,
        mix: Option<Vec<f64>>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<bool>>, Option<String>)> {
        let options = ModelOptions { precision, ..ModelOptions::default() };
        let (guarantee, predictions) = self.predict(py, &vectors, options, mix, threads)?;
        let labels = predictions.iter().map(|prediction| prediction.label as u64).collect();
        let abstain = predictions.iter().map(|prediction| prediction.abstain.unwrap_or(true)).collect();
        Ok((PyArray1::from_vec(py, labels), PyArray1::from_vec(py, abstain), guarantee.missing_answers()))
    }
}

impl Classifier {
    fn of(model: HeadModel, info: ModelInfo, reference: Option<Vec<u8>>) -> PyResult<Self> {
        let folded = model.folded().map_err(invalid)?;
        let mut check = None;
        if let Some(bytes) = &reference {
            let detector =
                reference_file::from_bytes(bytes, info.classes.len(), Some(model.projection().dimensions()));
            check =
                Some(ShiftCheck::new(detector.map_err(invalid)?, Some(model.projection())).map_err(invalid)?);
        }
        Ok(Self { model, folded, info, reference, check })
    }

    /// Returns the comparison with the reference, which has held-out labels.
    fn detector(&self) -> PyResult<(&ShiftCheck, &ShiftDetector)> {
        let check = self.check.as_ref();
        let found = check.and_then(|check| Some((check, check.detector()?)));
        found.filter(|(_, detector)| detector.labels() > 0).ok_or_else(|| {
            invalid("mix weights labels that a head was trained without, and there are too few of them")
        })
    }

    /// Predicts vectors; also returns the guarantees of these options.
    fn predict(
        &self,
        py: Python<'_>,
        vectors: &PyReadonlyArray2<'_, f32>,
        options: ModelOptions,
        mix: Option<Vec<f64>>,
        threads: usize,
    ) -> PyResult<(Guarantee, Vec<Prediction>)> {
        let numbers = vectors.as_slice()?;
        Guarantee::check(&options).map_err(invalid)?;
        let mut rule = PredictionRule::new(self.info.clone(), &options).map_err(invalid)?;
        if let Some(shares) = mix {
            let labels = &self.detector()?.1.reference().labels;
            if shares.len() != self.info.classes.len() {
                let classes = self.info.classes.len();
                return Err(invalid(format!(
                    "mix has {} shares, but there are {classes} classes",
                    shares.len()
                )));
            }
            check_shares(&shares).map_err(|problem| invalid(format!("mix: {problem}")))?;
            rule = rule.for_mix(OtherMix::known(&shares, labels), labels, &options).map_err(invalid)?;
        }
        let predictions = self.by_block(py, numbers, |block| {
            let logits = self.folded.logits(block).map_err(invalid)?;
            rule.predictions(&logits, threads).map_err(invalid)
        })?;
        Ok((rule.guarantee().clone(), predictions))
    }

    /// Calls `each` with one block of vectors after the other, until all are done or Python receives a signal.
    fn by_block<T: Send>(
        &self,
        py: Python<'_>,
        numbers: &[f32],
        each: impl Fn(&[f32]) -> PyResult<Vec<T>> + Sync,
    ) -> PyResult<Vec<T>> {
        let width = self.model.projection().width().max(1);
        interruptible(py, |stop| {
            let mut all = Vec::new();
            for block in numbers.chunks(BLOCK_ROWS * width) {
                // After a signal, the results so far are dropped.
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                all.extend(each(block)?);
            }
            Ok(all)
        })?
    }

    /// Returns rows with one entry per class.
    fn table<'py, T: Element>(&self, py: Python<'py>, numbers: Vec<T>) -> PyResult<Bound<'py, PyArray2<T>>> {
        let classes = self.info.classes.len();
        let rows = numbers.len() / classes.max(1);
        PyArray1::from_vec(py, numbers).reshape([rows, classes])
    }
}

fn class(label: i64) -> Option<u32> {
    if label == UNLABELLED { None } else { u32::try_from(label).ok() }
}

/// Returns the samples with out-of-fold predictions, and the probabilities of the selected head for them, each calibrated without
/// its own label.
fn out_of_fold(fit: &HeadFit, stop: &AtomicBool) -> PyResult<(Vec<u64>, Vec<f32>)> {
    let Some(kept) = fit.head() else { return Ok((Vec::new(), Vec::new())) };
    let logits = match kept.calibrator.calibrator() {
        Some(calibrator) => {
            let stop = || stop.load(Ordering::Relaxed);
            calibrator.cross_fit(&kept.predictions, &stop).map_err(internal)?.logits
        }
        None => kept.predictions.logits.clone(),
    };
    let logits = kept.predictions.shaped(&logits).map_err(internal)?;
    Ok((kept.predictions.ids.clone(), Calibrator::IDENTITY.probabilities(logits).map_err(internal)?))
}

/// Describes the heads that were tried, the difference made by unlabelled samples, and the labels that a calibrator lacks.
fn describe(fit: &HeadFit) -> Value {
    let heads: Vec<Value> =
        fit.heads.iter().enumerate().map(|(n, head)| candidate(head, n == fit.selected)).collect();
    let uncalibrated = match fit.head().map(|head| &head.calibrator) {
        Some(Fitted::Uncalibrated(Uncalibrated { held_out, min_labels, .. })) => {
            Some(json!({ "held_out": held_out, "min_labels": min_labels }))
        }
        _ => None,
    };
    json!({ "candidates": heads, "nll_difference": fit.nll_difference, "uncalibrated": uncalibrated })
}

fn candidate(head: &FittedHead, is_kept: bool) -> Value {
    let calibrator = head.calibrator.calibrator();
    json!({
        "name": HeadName::from(head.candidate).name(),
        "uses_unlabelled": !head.candidate.is_labels_alone(),
        "kept": is_kept,
        "nll": head.mean_nll(),
        "calibrator": calibrator.map(|fitted| &fitted.calibrator),
        "raw": calibrator.map(|fitted| fitted.raw),
        "calibrated": calibrator.map(|fitted| fitted.calibrated),
    })
}
