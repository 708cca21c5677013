//! A plot as the page shows it: a title, a sentence, drawings, images and a table.

use super::DataTable;
use super::example_prediction::ExamplePrediction;
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
