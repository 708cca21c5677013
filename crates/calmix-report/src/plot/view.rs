//! A plot as the page shows it: a title, a sentence, drawings, images and a table.

use serde::Serialize;

use super::DataTable;
use crate::svg::Drawing;

/// A plot of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotView {
    /// Its name in files and links.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What it shows and how to read it, in a sentence or two.
    pub sentence: String,
    /// The drawings, shown side by side.
    pub panels: Vec<Drawing>,
    /// Rows of images with a caption each.
    pub images: Vec<Images>,
    /// The data of the plot.
    pub table: DataTable,
}

/// A row of images.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    /// What the images have in common.
    pub title: &'static str,
    /// The images with their predictions.
    pub of: Vec<ExamplePrediction>,
}

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
