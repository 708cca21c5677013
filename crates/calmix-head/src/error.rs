//! The errors of training and using a head.

use calmix_core::error::CoreError;
use calmix_metrics::error::MetricsError;

/// The reason why a head could not be trained or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// The input contradicts itself.
    #[error("{0}")]
    Input(String),
    /// A setting that does not apply to heads.
    #[error("{0}")]
    Setting(&'static str),
    /// A number became infinite or undefined.
    #[error("step {step}: the {what} is not a finite number; a lower learning rate may help")]
    NotFinite {
        /// The step.
        step: u64,
        /// The name of the number.
        what: &'static str,
    },
    /// A row of vectors outside memory could not be read.
    #[error("{0}")]
    Read(String),
    /// The caller requested a stop.
    #[error("stopped before the head was trained")]
    Stopped,
    /// The method refused a batch.
    #[error(transparent)]
    Plan(#[from] CoreError),
    /// The calibrator could not be fitted.
    #[error(transparent)]
    Calibration(MetricsError),
}

impl From<MetricsError> for HeadError {
    fn from(error: MetricsError) -> Self {
        match error {
            MetricsError::Stopped => Self::Stopped,
            error => Self::Calibration(error),
        }
    }
}
