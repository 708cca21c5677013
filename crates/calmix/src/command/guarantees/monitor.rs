//! `calmix monitor`: the outputs of a model over time.

use anyhow::{Context, Result};
use calmix_io::atomic_file;
use calmix_io::shown::shown;

use crate::args::guarantees::monitor::MonitorArgs;
use crate::error::exit::Exit;
use crate::guarantees::monitor::monitor;
use crate::output::format::{grouped, shell_quoted};
use crate::predict::out_path::check_place;
use crate::terminal::{print, print_json, status};
use calmix_report::monitoring::Monitoring;

pub(crate) fn run(args: &MonitorArgs) -> Result<Exit> {
    if let Some(path) = &args.report {
        check_place(path)?;
    }
    let found = monitor(args)?;
    if let Some(path) = &args.report {
        atomic_file::write(path, found.page().as_bytes())
            .with_context(|| format!("cannot write {}", shown(path.display())))?;
    }
    if args.json {
        print_json(&serde_json::to_value(&found)?)?;
    } else {
        print(&table(&found))?;
    }
    status(&found.headline());
    status(&found.error_sentence());
    if let Some(path) = &args.report {
        status(&format!("plots: {}", shell_quoted(path)));
    }
    Ok(if found.alarm.is_some() { Exit::Alarm } else { Exit::Done })
}

/// Returns a line for each batch.
fn table(found: &Monitoring) -> String {
    let mut lines = vec![format!(
        "{:>5} {:>9} {:>7} {:>8} {:>8}  {:<12}  output",
        "batch", "rows", "error", "strange", "capital", "verdict"
    )];
    for (at, batch) in found.batches.iter().enumerate() {
        let percent =
            |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share));
        let capital = batch.log10_capital.map_or("–".to_owned(), |log10| format!("10^{log10:.1}"));
        let mark = if found.alarm == Some(at + 1) { "  alarm" } else { "" };
        lines.push(format!(
            "{:>5} {:>9} {:>7} {:>8} {capital:>8}  {:<12}  {}{mark}",
            at + 1,
            grouped(batch.rows),
            percent(batch.estimated_error),
            percent(batch.strange),
            batch.verdict.as_deref().unwrap_or("–"),
            shown(&batch.output)
        ));
    }
    lines.join("\n")
}
