//! Prediction sets and abstention around any model, from its probabilities for labels that it was not trained on: the code by which
//! the models of calmix have theirs.

use calmix_core::matrix::{MatrixOf, Scalar};
use calmix_core::rng::Seed;
use calmix_core::softmax::argmax;
use calmix_head::parallel;
use calmix_metrics::conformal::{ClassConditional, Conformal, PredictionSets, Score};
use calmix_metrics::held_out::{HeldOut, probability_log_odds};
use calmix_metrics::stats;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::interop::{classes_of, internal, invalid};
use crate::rows::{RowsOf, check_probabilities};

/// The number of rows that one thread processes at a time.
const ROWS_PER_TASK: usize = 4_096;

/// The nonconformity score of a rule, by its name.
fn score_of(rule: &str, seed: u64) -> PyResult<Score> {
    match rule {
        "lac" | "lac-by-class" => Ok(Score::Lac),
        "aps" => Ok(Score::RandomisedAps { seed: Seed(seed) }),
        "aps-deterministic" => Ok(Score::Aps),
        rule => Err(internal(format!("there is no rule {rule}"))),
    }
}

/// The score of each label by a rule; zero if its class is the likeliest, unless sets may be empty.
#[pyfunction]
pub(crate) fn set_scores<'py>(
    py: Python<'py>,
    rows: RowsOf<'_>,
    labels: PyReadonlyArray1<'_, i64>,
    rule: &str,
    seed: u64,
    may_be_empty: bool,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let labels = classes_of(&labels)?;
    let score = score_of(rule, seed)?;
    let scores = rows.with(
        py,
        |rows| scores(rows, &labels, score, may_be_empty),
        |rows| scores(rows, &labels, score, may_be_empty),
    );
    Ok(PyArray1::from_vec(py, scores?))
}

fn scores<T: Scalar>(
    rows: MatrixOf<'_, T>,
    labels: &[u32],
    score: Score,
    may_be_empty: bool,
) -> PyResult<Vec<f64>> {
    check_probabilities(rows)?;
    let mut scores = score.of_labels(rows, labels).map_err(invalid)?;
    if !may_be_empty {
        for ((score, row), &label) in scores.iter_mut().zip(rows.iter()).zip(labels) {
            // As in `HeldOut`: a set that always contains the likeliest class costs no coverage.
            *score = if argmax(row) == label as usize { 0.0 } else { *score };
        }
    }
    Ok(scores)
}

/// A calibrated rule for prediction sets.
#[pyclass(frozen, module = "calmix._calmix")]
pub(crate) struct SetRule(PredictionSets);

#[pymethods]
impl SetRule {
    #[new]
    fn new(
        scores: PyReadonlyArray1<'_, f64>,
        labels: PyReadonlyArray1<'_, i64>,
        groups: PyReadonlyArray1<'_, u32>,
        rule: &str,
        seed: u64,
        may_be_empty: bool,
        coverage: f64,
    ) -> PyResult<Self> {
        let alpha = 1.0 - coverage;
        let scores = scores.as_slice()?;
        let groups = groups.as_slice()?;
        if rule == "lac-by-class" {
            let labels = classes_of(&labels)?;
            let by_class = ClassConditional::from_scores(&labels, scores, groups, alpha).map_err(invalid)?;
            let rule = if may_be_empty { by_class.may_be_empty() } else { by_class };
            return Ok(Self(PredictionSets::ByClass(rule)));
        }
        let score = score_of(rule, seed)?;
        let marginal = Conformal::from_grouped_scores(scores, groups, score, alpha).map_err(invalid)?;
        let rule = if may_be_empty { marginal } else { marginal.never_empty() };
        Ok(Self(PredictionSets::Marginal(rule)))
    }

    /// The largest score with which each class is in a set; infinity if it is in every set.
    fn thresholds<'py>(&self, py: Python<'py>, classes: usize) -> Bound<'py, PyArray1<f64>> {
        let thresholds = match &self.0 {
            PredictionSets::Marginal(rule) => vec![rule.threshold.unwrap_or(f64::INFINITY); classes],
            PredictionSets::ByClass(rule) => rule.thresholds(classes),
        };
        PyArray1::from_vec(py, thresholds)
    }

    /// The smallest number of labels that gives a threshold: in all, or of each class.
    #[staticmethod]
    fn min_labels(coverage: f64) -> usize {
        Conformal::min_labels(1.0 - coverage)
    }

    /// Which classes are in the set of each row.
    fn members<'py>(
        &self,
        py: Python<'py>,
        rows: RowsOf<'_>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<bool>>> {
        let found = rows.with(py, |rows| self.of_rows(rows, threads), |rows| self.of_rows(rows, threads));
        let (members, shape) = found?;
        PyArray1::from_vec(py, members).reshape(shape)
    }
}

impl SetRule {
    fn of_rows<T: Scalar + Sync>(
        &self,
        rows: MatrixOf<'_, T>,
        threads: usize,
    ) -> PyResult<(Vec<bool>, [usize; 2])> {
        let tasks = rows.rows().div_ceil(ROWS_PER_TASK);
        let done = parallel::run(tasks, threads, |task| {
            let first = task * ROWS_PER_TASK;
            let rows = rows.range(first..(first + ROWS_PER_TASK).min(rows.rows()));
            check_probabilities(rows)?;
            Ok(self.0.members(rows, first as u64))
        });
        let mut members = Vec::with_capacity(rows.data().len());
        for of_task in done {
            members.extend(of_task.map_err(|error: PyErr| error)?);
        }
        Ok((members, [rows.rows(), rows.width()]))
    }
}

/// The score of each row by which a model abstains: the log-odds of its likeliest class.
#[pyfunction]
pub(crate) fn answer_scores<'py>(py: Python<'py>, rows: RowsOf<'_>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let scores = rows.with(py, log_odds, log_odds)?;
    Ok(PyArray1::from_vec(py, scores))
}

fn log_odds<T: Scalar>(rows: MatrixOf<'_, T>) -> PyResult<Vec<f64>> {
    check_probabilities(rows)?;
    Ok(rows.iter().map(probability_log_odds).collect())
}

/// A threshold: the score, and how many labels have at least that score, how many of these are right, and how many there are.
type ThresholdTuple = (f64, usize, usize, usize);

/// The threshold of each precision, which all hold except with probability `delta`.
#[pyfunction]
pub(crate) fn answer_thresholds(
    scores: PyReadonlyArray1<'_, f64>,
    right: PyReadonlyArray1<'_, bool>,
    groups: PyReadonlyArray1<'_, u32>,
    precisions: Vec<f64>,
    delta: f64,
) -> PyResult<Vec<Option<ThresholdTuple>>> {
    let answer = scores.as_slice()?.to_vec();
    let held_out = HeldOut {
        label: vec![0; answer.len()],
        answer,
        right: right.as_slice()?.to_vec(),
        group: groups.as_slice()?.to_vec(),
        ..HeldOut::default()
    };
    let found = held_out.answer_thresholds(&precisions, delta).map_err(invalid)?;
    let tuple = |found: calmix_metrics::abstention::AnswerThreshold| {
        (found.threshold, found.answered, found.right, found.n)
    };
    Ok(found.into_iter().map(|found| found.map(tuple)).collect())
}

/// The exact confidence interval of a share: Clopper and Pearson's.
#[pyfunction]
pub(crate) fn clopper_pearson(hits: usize, n: usize, level: f64) -> PyResult<(f64, f64)> {
    let estimate = stats::clopper_pearson(hits, n, level).map_err(invalid)?;
    Ok((estimate.low, estimate.high))
}
