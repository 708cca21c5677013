//! Accuracy and calibration of a classifier: metrics, calibrators and guarantees, on plain slices.
//!
//! Everything here is a pure function or plain data: no I/O, no threads, no clock, no tensors.
//!
//! | question | module |
//! |---|---|
//! | how well calibrated is a confidence? | [`measure`]: ECE and its variants, NLL, Brier score, risk and coverage |
//! | how is a confidence calibrated after training? | [`calibrator`]: temperature, vector scaling, isotonic regression; the choice among them, and its cross-validated gain |
//! | which classes does a prediction set contain? | [`conformal`] |
//! | above which threshold does a model answer? | [`abstention`] |
//! | how many errors can there be, given random answers that are looked at as they come? | [`stats::anytime_bound`] |
//! | which shares of a pool does an audit certify? | [`stats::share_sequence`] |
//! | what does a model store of its held-out labels for both? | [`held_out`] |
//! | are new samples like those that a guarantee was shown for? | [`shift`] |
//! | are new samples still like those of a reference? | [`shift::martingale`] |
//! | which samples count as one observation? | [`groups`] |
//! | how uncertain is a metric, and is a difference significant? | [`stats`] |
//! | how good are predictions, in all metrics at once? | [`metrics`] of [`predictions`]; with a fitted calibrator, and which evaluation is the result, [`mod@evaluate`] |
//! | which labels fitted the calibrator of a model, or why is there none? | [`fitted_calibrator`] |
//! | how easy were the samples of a run? | [`margins`] |
//! | how good were the pseudo-labels of a run? | [`pseudo_labels`] |
//! | where is the minimum of a smooth convex function? | [`lbfgs`] |
//! | how well do two people agree on labels? | [`stats::agreement`] |
//! | which inputs are invalid? | [`error`] |
//!
//! Measures a confidence and calibrates it; `cargo run -p calmix-metrics --example calibrate_logits FILE` does so with your own
//! logits:
//!
//! ```
//! use calmix_core::matrix::Matrix;
//! use calmix_metrics::calibrator::temperature::Temperature;
//! use calmix_metrics::measure::{Binning, TopLabel, ece, reliability_bins};
//!
//! // Four predictions over two classes: three are right, all are very confident.
//! let logits = [4.0, -4.0, -4.0, 4.0, 4.0, -4.0, 4.0, -4.0];
//! let labels = [0, 1, 0, 1];
//! let logits = Matrix::new(&logits, 4, 2)?;
//! let predictions = TopLabel::from_logits(logits, &labels, 1.0)?;
//! let raw = ece(&reliability_bins(&predictions, Binning::default()));
//!
//! let fitted = Temperature::fit(logits, &labels)?;
//! let predictions = TopLabel::from_logits(logits, &labels, fitted.value())?;
//! let calibrated = ece(&reliability_bins(&predictions, Binning::default()));
//! assert!(raw > 0.24 && calibrated < 0.001);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod abstention;
pub mod calibrator;
mod checked;
pub mod conformal;
pub mod error;
pub mod evaluate;
mod exponential;
pub mod fitted_calibrator;
pub mod groups;
pub mod held_out;
pub mod lbfgs;
pub mod learning_curve;
pub mod margins;
pub mod measure;
pub mod metrics;
pub mod predictions;
pub mod pseudo_labels;
pub mod shift;
pub mod stats;
