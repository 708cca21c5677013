//! Measures of calibration.
//!
//! A classifier is calibrated if, for example, eight in ten of its predictions with confidence 0.8 are right.
//! [`TopLabel`] holds the confidence of each prediction and whether it was right. Every measure of the predicted
//! class alone is computed from it:
//!
//! - [`reliability_bins`], and from them [`ece`], [`mean_confidence`], [`confidence_gap`] and
//!   [`debiased_squared_error`]; [`BinTotals`] computes the bins batch by batch;
//! - [`smooth_ece`], which needs no bins;
//! - the risk at every coverage ([`coverage_curve`], [`aurc`]).
//!
//! Measures of all classes take the matrix: [`class_wise_ece`], [`brier_score`], [`nll_from_logits`] and
//! [`nll_from_probabilities`]. A matrix may be of f32 or of f64 ([`MatrixOf`](calmix_core::matrix::MatrixOf)): numbers of f64
//! are never rounded to f32.
//!
//! Recall, precision and F1 by class, the balanced error and macro F1 are those of [`ClassRows`].
//!
//! [`vote_metrics`] compares a model with the votes of several annotators.
//!
//! Measures of resampled rows are prepared once and then computed for [`Counts`]: [`Binned`],
//! [`ClassRows`], [`ClassWise`], [`RiskCoverage`], and the scores of every row ([`brier_of_rows`], [`nll_of_rows`]). The plain
//! functions are these with every row counted once.
//!
//! Measures check their arguments and fail with a [`MetricsError`](crate::error::MetricsError).
//!
//! Sums are accumulated in f64 in the order of the rows. Which bin a row falls in and how ties are treated
//! never depend on that order, so shuffled rows give the same result up to the rounding of the sums. Every
//! measure of zero rows is zero.
//!
//! ```
//! use calmix_metrics::measure::{Binning, TopLabel, ece, reliability_bins};
//!
//! let confidence = vec![0.05, 0.35, 0.62, 0.66, 0.667, 0.93, 0.95, 1.0];
//! let right = vec![false, true, false, true, true, true, false, true];
//! let predictions = TopLabel::new(confidence, right)?;
//! let bins = reliability_bins(&predictions, Binning::default());
//! assert!((ece(&bins) - 0.291_625).abs() < 1e-12);
//! # Ok::<(), calmix_metrics::error::MetricsError>(())
//! ```

mod bins;
mod by_class;
mod class_wise;
mod counts;
mod coverage;
mod proper;
mod smooth;
mod top_label;
mod votes;

pub use bins::{
    BinTotals, Binned, Binning, Edges, ReliabilityBin, confidence_gap, debiased_squared_error, ece,
    mean_confidence, reliability_bins,
};
pub use by_class::{ClassMeans, ClassRows, ClassScores};
pub use class_wise::{ClassWise, class_wise_ece};
pub use counts::Counts;
pub use coverage::{CoveragePoint, RiskCoverage, aurc, coverage_curve};
pub use proper::{
    brier_of_rows, brier_score, nll_from_logits, nll_from_probabilities, nll_of_probability_rows, nll_of_rows,
};
pub use smooth::{SmoothEce, smooth_ece};
pub use top_label::TopLabel;
pub use votes::{VoteMetrics, vote_metrics};
