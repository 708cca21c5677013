//! Calibration: how far confidence is from the truth, and the maps that bring it nearer after training.

pub mod conformal;
pub mod cross_fit;
pub mod fit_error;
pub mod isotonic;
mod lbfgs;
pub mod temperature;
pub mod vector;
