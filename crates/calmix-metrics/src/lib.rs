//! How good a classifier is, and how true its confidence: measures, calibrators and guarantees, on plain slices.
//!
//! Everything here is a pure function or plain data: no I/O, no threads, no clock, no tensors.
//!
//! | question | module |
//! |---|---|
//! | how well calibrated is a confidence? | [`measure`]: ECE and its variants, NLL, Brier score, risk and coverage |
//! | what makes a confidence true after training? | [`calibrator`]: temperature, vector scaling, isotonic regression; which of them, and what it is worth |
//! | which classes does a prediction set hold? | [`conformal`] |
//! | from which confidence on does a model answer? | [`abstention`] |
//! | what does a model keep of its held-out labels for both? | [`held_out`] |
//! | how sure is a metric, and is a difference more than chance? | [`stats`] |
//! | how good are predictions, in all metrics at once? | [`metrics`] of [`predictions`]; with a fitted map, and which of many is the result, [`mod@evaluate`] |
//! | which labels fitted the map of a model, and why is there none? | [`fitted_calibrator`] |
//! | how easy were the samples of a run? | [`margin_histogram`] |
//! | what is wrong with what was given? | [`error`] |
#![forbid(unsafe_code)]

pub mod abstention;
pub mod calibrator;
mod checked;
pub mod conformal;
pub mod error;
pub mod evaluate;
pub mod fitted_calibrator;
pub mod held_out;
pub mod margin_histogram;
pub mod measure;
pub mod metrics;
pub mod predictions;
pub mod stats;

/// The README's example is tested with the crate's own.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
