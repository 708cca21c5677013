//! The results of a sweep: nothing in them depends on the order, on the workers or on the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use calmix::run::csv_line::{CsvCell, csv_line};
use calmix::run::evaluate::{Figures, Selection};
use calmix::run::read;
use calmix::run::sweep_folder::{CellState, SweepFolder};
use serde::Serialize;
use serde_json::Value;

use super::PlannedCell;

/// A run of a sweep in `summary.json`.
#[derive(Debug, Serialize)]
struct CellResult<'a> {
    name: &'a str,
    recipe: &'a str,
    /// The keys that the sweep sets.
    settings: BTreeMap<&'a str, Value>,
    state: &'static str,
    /// What follows is of finished runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<CellFigures>,
}

#[derive(Debug, Serialize)]
struct CellFigures {
    selection: Selection,
    on: &'static str,
    samples: u64,
    figures: Figures,
}

/// Writes `summary.csv` and `summary.json`.
pub(super) fn write(folder: &SweepFolder, cells: &[PlannedCell]) -> Result<[PathBuf; 2]> {
    let results = cells.iter().map(|planned| result(folder, planned)).collect::<Result<Vec<_>>>()?;
    let mut json = serde_json::to_vec_pretty(&serde_json::json!({ "runs": results }))?;
    json.push(b'\n');
    Ok(folder.write_summary(&json, csv(&results)?.as_bytes())?)
}

fn result<'a>(folder: &SweepFolder, planned: &'a PlannedCell) -> Result<CellResult<'a>> {
    let cell = &planned.cell;
    let settings = cell.settings.iter().map(|(key, value)| Ok((key.as_str(), serde_json::to_value(value)?)));
    let state = match folder.state(&cell.name)? {
        CellState::Finished => "finished",
        CellState::Failed(_) => "failed",
        CellState::Open => "open",
    };
    let result = match state {
        "finished" => read::result(&folder.run(&cell.name))?,
        _ => None,
    };
    let result = result.and_then(|result| {
        let selected = result.finished.selected.get(&result.selection)?;
        let (on, samples, figures) = (selected.on.name(), selected.samples, selected.figures);
        Some(CellFigures { selection: result.selection, on, samples, figures })
    });
    let settings = settings.collect::<Result<_>>()?;
    Ok(CellResult { name: &cell.name, recipe: &cell.recipe, settings, state, result })
}

/// A line for each run: its name, recipe, state, then every key that any run sets, then its figures.
fn csv(results: &[CellResult<'_>]) -> Result<String> {
    let keys: BTreeSet<&str> = results.iter().flat_map(|result| result.settings.keys().copied()).collect();
    let rows = results.iter().map(|result| result.result.as_ref().map(serde_json::to_value).transpose());
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let figures = |row: &Option<Value>| row.as_ref()?.get("figures")?.as_object().cloned();
    let names: BTreeSet<String> = rows
        .iter()
        .filter_map(figures)
        .flat_map(|figures| figures.into_iter().map(|(name, _)| name))
        .collect();
    let head = ["name", "recipe", "state"].into_iter().chain(keys.iter().copied());
    let head = head.chain(["selection", "on", "samples"]).chain(names.iter().map(String::as_str));
    let mut table = csv_line(head.map(CsvCell::text));
    for (result, row) in results.iter().zip(&rows) {
        let mut cells = [result.name, result.recipe, result.state].map(CsvCell::text).to_vec();
        cells.extend(keys.iter().map(|key| cell(result.settings.get(key))));
        cells.extend(
            ["selection", "on", "samples"].map(|key| cell(row.as_ref().and_then(|row| row.get(key)))),
        );
        let figures = figures(row).unwrap_or_default();
        cells.extend(names.iter().map(|name| cell(figures.get(name))));
        table.push_str(&csv_line(cells));
    }
    Ok(table)
}

/// Makes a cell of a value; null and what is missing are empty.
fn cell(value: Option<&Value>) -> CsvCell<'_> {
    match value {
        Some(Value::String(text)) => CsvCell::text(text),
        value => CsvCell::plain(value.filter(|value| !value.is_null())),
    }
}
