//! A plot as people see it: a title, a sentence, drawings, images and a table.

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
    /// The drawings, to be seen side by side.
    pub panels: Vec<Drawing>,
    /// Images with a line each.
    pub images: Vec<Images>,
    /// The numbers.
    pub table: DataTable,
}

/// A row of images.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    /// What they have in common.
    pub title: &'static str,
    /// What the model said of each.
    pub of: Vec<ExamplePrediction>,
}

/// Every plot that the runs have numbers for, in the order of a page.
pub fn all(report: &RunsReport) -> Vec<PlotView> {
    let runs = report.runs.as_slice();
    let mut metrics = Vec::new();
    metrics.extend(reliability::view(runs));
    metrics.extend(coverage::view(runs));
    metrics.extend(training::view(runs));
    metrics.extend(pseudo_labels::view(runs));
    for (at, run) in runs.iter().enumerate() {
        // The names of files and links differ where there are several runs.
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
