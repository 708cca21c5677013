//! All plots of a report, in the order of the page.

use super::{
    OfRun, PlotView, by_class, confusion, coverage, examples, margins, pseudo_labels, reliability, training,
};
use crate::report::{RunReport, RunsReport};

/// Draws every plot that the runs have data for, in the order of the page.
pub fn all(report: &RunsReport) -> Vec<PlotView> {
    let runs = report.runs.as_slice();
    let mut metrics = Vec::new();
    metrics.extend(reliability::view(&of_runs(runs, |run| Some(&run.evaluated.as_ref()?.reliability))));
    metrics.extend(coverage::view(&of_runs(runs, |run| Some(&run.evaluated.as_ref()?.coverage))));
    metrics.extend(training::view(&of_runs(runs, |run| run.training.as_ref())));
    metrics.extend(pseudo_labels::view(&of_runs(runs, |run| Some(run.pseudo_labels.as_slice()))));
    for (at, run) in runs.iter().enumerate() {
        // With several runs, the names of files and links need a number.
        let own = |name: &str| if runs.len() > 1 { format!("{name}-{}", at + 1) } else { name.to_owned() };
        let of =
            |title: &str| if runs.len() > 1 { format!("{}: {title}", run.name) } else { title.to_owned() };
        let label = |view: PlotView| PlotView { name: own(&view.name), title: of(&view.title), ..view };
        let evaluated = run.evaluated.as_ref();
        metrics.extend(run.margins.as_ref().and_then(margins::view).map(label));
        metrics.extend(evaluated.map(|evaluated| confusion::view(&evaluated.confusion)).map(label));
        metrics.extend(evaluated.map(|evaluated| by_class::view(&evaluated.by_class)).map(label));
        metrics.extend(evaluated.map(|evaluated| examples::view(&evaluated.examples)).map(label));
    }
    metrics
}

/// The data of a plot, from all runs that have it.
fn of_runs<'a, T: ?Sized>(
    runs: &'a [RunReport],
    pick: impl Fn(&'a RunReport) -> Option<&'a T>,
) -> Vec<OfRun<'a, T>> {
    let found = runs.iter().enumerate();
    found.filter_map(|(tone, run)| Some(OfRun { tone, name: &run.name, data: pick(run)? })).collect()
}
