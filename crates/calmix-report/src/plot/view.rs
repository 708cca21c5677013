//! A plot as the page shows it: a title, a sentence, drawings, images and a table.

use super::examples::ExamplePrediction;
use super::{
    DataTable, by_class, confusion, coverage, examples, margins, pseudo_labels, reliability, training,
};
use crate::report::RunsReport;
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

/// Draws every plot that the runs have data for, in the order of the page.
pub fn all(report: &RunsReport) -> Vec<PlotView> {
    let runs = report.runs.as_slice();
    let mut metrics = Vec::new();
    metrics.extend(reliability::view(runs));
    metrics.extend(coverage::view(runs));
    metrics.extend(training::view(runs));
    metrics.extend(pseudo_labels::view(runs));
    for (at, run) in runs.iter().enumerate() {
        // With several runs, the names of files and links need a number.
        let own = |name: &str| if runs.len() > 1 { format!("{name}-{}", at + 1) } else { name.to_owned() };
        let of =
            |title: &str| if runs.len() > 1 { format!("{}: {title}", run.name) } else { title.to_owned() };
        let label = |view: PlotView| PlotView { name: own(&view.name), title: of(&view.title), ..view };
        metrics.extend(margins::view(run).map(label));
        metrics.extend(confusion::view(run).map(label));
        metrics.extend(by_class::view(run).map(label));
        metrics.extend(examples::view(run).map(label));
    }
    metrics
}
