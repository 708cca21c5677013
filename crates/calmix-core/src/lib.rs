//! The mathematics of CalibrateMix, of the semi-supervised methods under it, and of calibration.
#![forbid(unsafe_code)]

pub mod calibration;
pub mod matrix;
pub mod rng;
pub mod softmax;
pub mod stats;
