//! The maps that calibrate a confidence after training.
//!
//! They are values stored beside a model, never part of its weights: [`temperature`], [`vector`] scaling, [`isotonic`]
//! regression, and any of them as a [`any_calibrator`]. [`CalibratorChoice`] says which of them a set of labels carries;
//! [`cross_fit`] evaluates a map where there is no second set of labels.

pub mod any_calibrator;
mod calibrator_choice;
pub mod cross_fit;
pub mod isotonic;
mod lbfgs;
pub mod temperature;
pub mod vector;

pub use calibrator_choice::{
    CalibratorChoice, TriedCalibrator, is_clearly_lower, temperature_where_it_helps,
};
