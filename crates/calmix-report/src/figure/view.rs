//! A figure as people see it: a title, a sentence, drawings, pictures and a table.

use super::examples::ExamplePrediction;
use super::{
    DataTable, by_class, confusion, coverage, examples, margins, pseudo_labels, reliability, training,
};
use crate::report::RunsReport;
use crate::svg::Drawing;

/// A figure of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureView {
    /// Its name in files and links.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What it shows and how to read it, in a sentence or two.
    pub sentence: String,
    /// The drawings, to be seen side by side.
    pub panels: Vec<Drawing>,
    /// Pictures with a line each.
    pub pictures: Vec<Pictures>,
    /// The numbers.
    pub table: DataTable,
}

/// A row of pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct Pictures {
    /// What they have in common.
    pub title: &'static str,
    /// What the model said of each.
    pub of: Vec<ExamplePrediction>,
}

/// Every figure that the runs have numbers for, in the order of a page.
pub fn all(report: &RunsReport) -> Vec<FigureView> {
    let runs = report.runs.as_slice();
    let mut figures = Vec::new();
    figures.extend(reliability::view(runs));
    figures.extend(coverage::view(runs));
    figures.extend(training::view(runs));
    figures.extend(pseudo_labels::view(runs));
    for (at, run) in runs.iter().enumerate() {
        // The names of files and links differ where there are several runs.
        let own = |name: &str| if runs.len() > 1 { format!("{name}-{}", at + 1) } else { name.to_owned() };
        let of =
            |title: &str| if runs.len() > 1 { format!("{}: {title}", run.name) } else { title.to_owned() };
        let label = |view: FigureView| FigureView { name: own(&view.name), title: of(&view.title), ..view };
        figures.extend(margins::view(run).map(label));
        figures.extend(confusion::view(run).map(label));
        figures.extend(by_class::view(run).map(label));
        figures.extend(examples::view(run).map(label));
    }
    figures
}
