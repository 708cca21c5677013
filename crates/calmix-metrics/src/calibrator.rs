//! Calibrators, which correct the confidence of a model after training.
//!
//! They are stored beside a model and never change its weights: [`temperature`], [`vector`] scaling, [`isotonic`]
//! regression, and [`any_calibrator`] for any of them. [`CalibratorChoice`] chooses the kind that a set of labels supports;
//! [`cross_fit`] evaluates a calibrator without a second set of labels.

pub mod any_calibrator;
mod calibrator_choice;
pub mod cross_fit;
pub mod isotonic;
pub mod temperature;
pub mod vector;

pub use calibrator_choice::{CalibratorChoice, TriedCalibrator, is_lower_by, temperature_where_it_helps};
