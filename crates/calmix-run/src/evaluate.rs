//! How good a network is, and how true its confidence: every figure from logits and labels.
//!
//! [`Predictions`] are the logits of a network for a split, and have a file format. [`evaluate()`] turns them
//! into an [`Evaluation`]: a pure function, so every number of the run can be rebuilt from the file.
//!
//! | question | here |
//! |---|---|
//! | How good? | [`Figures`] |
//! | How sure is that? | [`Intervals`], by bootstrap, at the end of a run |
//! | What is a fitted temperature worth? | [`Scaling`] |
//! | Which of many evaluations is the result? | [`Selection`] |
//!
//! ```
//! use calmix_run::evaluate::{Predictions, evaluate};
//! use calmix_run::events::{EvalModel, EvalSet};
//!
//! let predictions = Predictions {
//!     step: 1000,
//!     split: EvalSet::Test,
//!     model: EvalModel::Ema,
//!     classes: vec!["cat".to_owned(), "dog".to_owned()],
//!     ids: vec![7, 8, 9],
//!     labels: vec![0, 1, 1],
//!     logits: vec![2.0, 0.0, 0.0, 3.0, 1.0, 0.0],
//! };
//! let file = predictions.to_bytes()?;
//! let evaluation = evaluate(&Predictions::from_bytes(&file)?, None, None)?;
//! assert_eq!(evaluation.figures.error, 1.0 / 3.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod figures;
mod intervals;
mod predictions;
mod rows;
mod scaling;
mod selection;

use calmix_core::calibration::CalibrationError;
use calmix_core::calibration::temperature::Temperature;
use calmix_core::rng::Seed;

pub use figures::{EDGES, Figures};
pub use intervals::{Intervals, Limits, Resampling};
pub use predictions::{Predictions, PredictionsError};
pub use scaling::{ENOUGH, FittedOn, Scaling};
pub use selection::{Selected, Selection, select};

use rows::PreparedRows;

use crate::events::{Evaluation, Scaled};
pub use crate::tensors::TensorsError;

/// Measures predictions: the figures, at the end of a run their intervals, and both again at a fitted temperature.
///
/// Replicates are a function of the seed, the step and the split: all models and temperatures are measured on the
/// same resampled rows, so their differences are not those of the draws.
///
/// # Errors
/// If labels and logits do not fit each other, or a logit is not finite.
pub fn evaluate(
    predictions: &Predictions,
    scaling: Option<&Scaling>,
    resampling: Option<(Resampling, Seed)>,
) -> Result<Evaluation, CalibrationError> {
    let all = evaluate_unless(predictions, scaling, resampling, &mut || false);
    Ok(all?.unwrap_or_else(|| unreachable!("nobody asked to stop")))
}

/// As [`evaluate()`], unless `stop`, which is asked before every replicate, says so: then there is nothing.
///
/// # Errors
/// As [`evaluate()`].
pub fn evaluate_unless(
    predictions: &Predictions,
    scaling: Option<&Scaling>,
    resampling: Option<(Resampling, Seed)>,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Option<Evaluation>, CalibrationError> {
    let (logits, labels) = (predictions.matrix()?, predictions.labels.as_slice());
    let mut measure = |temperature| {
        let rows = PreparedRows::new(logits, labels, temperature)?;
        let mut resample = |(how, seed)| Intervals::of_rows(&rows, how, predictions.seed(seed), stop);
        let intervals = resampling.map(&mut resample).transpose();
        let (bins, by_class) = (rows.bins(), rows.class_accuracy(labels, logits.width()));
        Ok(intervals.ok().map(|intervals| (Figures::of_rows(&rows), intervals.flatten(), bins, by_class)))
    };
    let Some((figures, intervals, bins, class_accuracy)) = measure(Temperature::IDENTITY)? else {
        return Ok(None);
    };
    let mut scaled = None;
    if let Some(&Scaling { temperature, fitted_on, samples }) = scaling {
        // A temperature never changes which class wins.
        let Some((figures, intervals, bins, _)) = measure(temperature)? else { return Ok(None) };
        scaled = Some(Scaled { temperature, fitted_on, fitted_samples: samples, figures, bins, intervals });
    }
    Ok(Some(Evaluation {
        step: predictions.step,
        split: predictions.split,
        model: predictions.model,
        samples: labels.len() as u64,
        skipped: 0,
        edges: EDGES,
        figures,
        class_accuracy,
        bins,
        intervals,
        scaled,
    }))
}
