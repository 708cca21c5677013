//! A folder of runs, as a table.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_metrics::metrics::MIN_SAMPLES_FOR_ECE;
use calmix_run::read::overview::{RunOverview, RunState, overview, runs_in};
use serde_json::{Value, json};

use crate::output::format::{counted, grouped, percent, shell_quoted};
use crate::terminal::Output;

/// A column of the table: its title, whether its cells are numbers, and its cells.
struct Column {
    title: &'static str,
    is_number: bool,
    cells: Vec<String>,
}

/// Columns that are left out on a narrow terminal, the least important first.
const DROP_ORDER: [&str; 5] = ["on", "recipe", "seeds", "method", "ECE"];

/// Inspects the runs in `folder`; `None` if there are none.
pub(super) fn inspect(folder: &Path) -> Result<Option<Output>> {
    let runs: Vec<RunOverview> = runs_in(folder)?.iter().map(|run| overview(run)).collect();
    if runs.is_empty() {
        return Ok(None);
    }
    let unreadable = runs.iter().filter_map(|run| match &run.state {
        RunState::Unreadable(why) => Some(format!("{} cannot be read: {why}\n", name(run))),
        _ => None,
    });
    let unreadable = unreadable.collect::<Vec<_>>().concat();
    let text = format!(
        "{} in {}\n\n{}\n{unreadable}next: calmix inspect {}\n",
        counted(runs.len() as u64, "run"),
        shown(folder.display()),
        table(columns(&runs), width()),
        shell_quoted(&folder.join("RUN")),
    );
    let json = json!({
        "kind": "runs",
        "folder": folder.display().to_string(),
        "runs": runs.iter().map(document).collect::<Vec<_>>(),
    });
    Ok(Some(Output { text, json }))
}

/// Returns whether every subfolder is a run.
pub(super) fn are_alone_in(folder: &Path) -> Result<bool> {
    let folders = std::fs::read_dir(folder)?.flatten().filter(|entry| entry.path().is_dir()).count();
    Ok(folders == runs_in(folder)?.len())
}

fn name(run: &RunOverview) -> String {
    shown(run.folder.file_name().unwrap_or_default().display())
}

fn document(run: &RunOverview) -> Value {
    let problem = match &run.state {
        RunState::Unreadable(why) => Some(why),
        _ => None,
    };
    json!({
        "folder": run.folder.display().to_string(),
        "state": run.state.word(),
        "problem": problem,
        "step": run.step,
        "summary": run.summary,
        "metrics": run.metrics,
    })
}

fn columns(runs: &[RunOverview]) -> Vec<Column> {
    let column = |title, is_number, cell: &dyn Fn(&RunOverview) -> Option<String>| {
        let cells = runs.iter().map(|run| cell(run).unwrap_or_else(|| "-".to_owned())).collect();
        Column { title, is_number, cells }
    };
    let metric = |of: fn(&RunOverview) -> Option<f64>| {
        move |run: &RunOverview| of(run).map(|share| percent(share, None))
    };
    vec![
        column("run", false, &|run| Some(name(run))),
        column("recipe", false, &|run| run.summary.as_ref()?.based_on.as_ref().map(shown)),
        column("method", false, &|run| {
            let summary = run.summary.as_ref()?;
            let mixed = (summary.pairing != "none").then(|| format!("+{}", summary.pairing));
            Some(shown(format!("{}{}", summary.base, mixed.unwrap_or_default())))
        }),
        // train.seed and labels.seed.
        column("seeds", true, &|run| {
            run.summary.as_ref().map(|summary| format!("{}/{}", summary.seed, summary.label_seed))
        }),
        column("step", true, &|run| {
            let steps = Some(run.summary.as_ref()?.steps).filter(|&steps| steps > 0)?;
            Some(format!("{}/{}", grouped(run.step.unwrap_or(0)), grouped(steps)))
        }),
        column("error", true, &metric(|run| run.metrics.map(|metrics| metrics.error))),
        column(
            "ECE",
            true,
            &metric(|run| {
                let metrics = run.metrics.filter(|metrics| metrics.samples >= MIN_SAMPLES_FOR_ECE)?;
                Some(metrics.ece_15)
            }),
        ),
        column("on", false, &|run| run.metrics.map(|metrics| metrics.split.word().to_owned())),
        column("state", false, &|run| Some(run.state.word().to_owned())),
    ]
}

/// Returns the width of the terminal in columns; unlimited if the output is not a terminal.
fn width() -> usize {
    let out = std::io::stdout();
    let size = if out.is_terminal() { terminal_size::terminal_size_of(out) } else { None };
    size.map_or(usize::MAX, |(width, _)| usize::from(width.0))
}

fn table(mut columns: Vec<Column>, room: usize) -> String {
    let widest = |column: &Column| {
        let cells = column.cells.iter().map(|cell| cell.chars().count());
        cells.chain([column.title.len()]).max().unwrap_or(0)
    };
    let needs = |columns: &[Column]| columns.iter().map(|column| widest(column) + 2).sum::<usize>() - 2;
    for title in DROP_ORDER {
        if needs(&columns) > room {
            columns.retain(|column| column.title != title);
        }
    }
    let cell = |column: &Column, text: &str| {
        let width = widest(column);
        if column.is_number { format!("{text:>width$}") } else { format!("{text:<width$}") }
    };
    let line = |of: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns.iter().map(|column| cell(column, &of(column))).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let body = (0..rows).map(|row| line(&|column| column.cells.get(row).cloned().unwrap_or_default()));
    line(&|column| column.title.to_owned()) + &body.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_keeps_what_tells_runs_apart() {
        let columns = || {
            let one =
                |title, is_number, cell: &str| Column { title, is_number, cells: vec![cell.to_owned()] };
            vec![
                one("run", false, "cpu-folder-1"),
                one("recipe", false, "cpu-folder"),
                one("method", false, "softmatch+calibratemix"),
                one("step", true, "2/1,500"),
                one("state", false, "running"),
            ]
        };
        assert_eq!(
            table(columns(), usize::MAX),
            "run           recipe      method                     step  state\n\
             cpu-folder-1  cpu-folder  softmatch+calibratemix  2/1,500  running\n"
        );
        assert_eq!(
            table(columns(), 60),
            "run           method                     step  state\n\
             cpu-folder-1  softmatch+calibratemix  2/1,500  running\n"
        );
        assert_eq!(table(columns(), 20).lines().next(), Some("run              step  state"));
    }
}
