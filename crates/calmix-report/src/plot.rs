//! The plots, one file each: plain data first, then the drawing and the table below it.

pub mod by_class;
pub mod confusion;
pub mod coverage;
pub mod examples;
pub mod margins;
pub(crate) mod monitored;
pub mod pseudo_labels;
pub mod reliability;
pub mod training;
mod view;

use crate::report::{RunReport, RunsReport};
use view::RunData;
pub use view::{DataTable, ExamplePrediction, ImageRow, PlotView, TableCell};

/// Draws every plot with data, in the order of the page.
pub fn all(report: &RunsReport) -> Vec<PlotView> {
    let runs = report.runs.as_slice();
    let mut plots = Vec::new();
    plots.extend(reliability::view(&of_runs(runs, |run| Some(&run.evaluated.as_ref()?.reliability))));
    plots.extend(coverage::view(&of_runs(runs, |run| Some(&run.evaluated.as_ref()?.coverage))));
    plots.extend(training::view(&of_runs(runs, |run| run.training.as_ref())));
    plots.extend(pseudo_labels::view(&of_runs(runs, |run| Some(run.pseudo_labels.as_slice()))));
    for (at, run) in runs.iter().enumerate() {
        // With several runs, the names of files and links need a number.
        let numbered =
            |name: &str| if runs.len() > 1 { format!("{name}-{}", at + 1) } else { name.to_owned() };
        let titled =
            |title: &str| if runs.len() > 1 { format!("{}: {title}", run.name) } else { title.to_owned() };
        let label =
            |view: PlotView| PlotView { name: numbered(&view.name), title: titled(&view.title), ..view };
        let evaluated = run.evaluated.as_ref();
        plots.extend(run.margins.as_ref().and_then(margins::view).map(label));
        plots.extend(evaluated.map(|evaluated| confusion::view(&evaluated.confusion)).map(label));
        plots.extend(evaluated.map(|evaluated| by_class::view(&evaluated.by_class)).map(label));
        plots.extend(evaluated.map(|evaluated| examples::view(&evaluated.examples)).map(label));
    }
    plots
}

/// Collects the data of a plot from all runs that have them.
fn of_runs<'a, T: ?Sized>(
    runs: &'a [RunReport],
    pick: impl Fn(&'a RunReport) -> Option<&'a T>,
) -> Vec<RunData<'a, T>> {
    let found = runs.iter().enumerate();
    found.filter_map(|(tone, run)| Some(RunData { tone, name: &run.name, data: pick(run)? })).collect()
}
