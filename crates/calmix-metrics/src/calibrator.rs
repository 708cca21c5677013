//! The maps that calibrate a confidence after training.
//!
//! They are values stored beside a model, never part of its weights: [`temperature`], [`vector`] scaling, [`isotonic`]
//! regression, and any of them as a [`confidence_map`]. [`CalibratorChoice`] says which of them a set of labels carries;
//! [`cross_fit`] judges a map where there is no second set of labels.

mod calibrator_choice;
pub mod confidence_map;
pub mod cross_fit;
pub mod isotonic;
mod lbfgs;
pub mod temperature;
pub mod vector;

pub use calibrator_choice::{CalibratorChoice, TriedMap, is_clearly_lower, temperature_where_it_helps};
