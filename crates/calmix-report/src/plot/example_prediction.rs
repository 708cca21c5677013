//! The prediction for one image, as a page shows it.

use serde::Serialize;

/// The prediction for one image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExamplePrediction {
    /// The id of the sample.
    pub id: u64,
    /// The name of its file; `None` if the run has no thumbnail of it.
    pub name: Option<String>,
    /// Its true class.
    pub label: String,
    /// The predicted class.
    pub predicted: String,
    /// The network's own confidence.
    pub confidence: f64,
    /// The calibrated confidence; `None` without a calibrator.
    pub calibrated: Option<f64>,
    /// The thumbnails, small and large; `None` if the run has none or they were not requested.
    #[serde(skip)]
    pub images: Option<[Vec<u8>; 2]>,
}

impl ExamplePrediction {
    /// The calibrated confidence, or else the network's own.
    pub(super) fn shown_confidence(&self) -> f64 {
        self.calibrated.unwrap_or(self.confidence)
    }
}
