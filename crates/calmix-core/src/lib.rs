//! The mathematics of CalibrateMix, of the semi-supervised methods under it, and of calibration.
#![forbid(unsafe_code)]

pub mod calibration;
pub mod cosine;
mod lanes;
pub mod margin;
pub mod matrix;
pub mod method;
pub mod mixup;
pub mod observation;
pub mod pair;
pub mod plan;
pub mod preset;
pub mod pseudo;
pub mod rng;
pub mod samples;
pub mod schedule;
pub mod smoothing;
pub mod softmax;
pub mod split;
pub mod stats;
