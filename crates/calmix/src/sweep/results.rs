//! The results of a sweep. They do not depend on the order of the runs, on the workers or on the time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use calmix_recipe::Selection;
use calmix_run::csv_line::{CsvCell, csv_line};
use calmix_run::read;
use calmix_run::result::HeadName;
use calmix_run::result::{ModelMetrics, model_metrics};
use calmix_run::sweep_folder::{CellState, SweepFolder};
use serde::Serialize;
use serde_json::Value;

use super::sweep_run::SweepRun;

/// A run of a sweep in `summary.json`.
#[derive(Debug, Serialize)]
struct CellResult<'a> {
    name: &'a str,
    recipe: &'a str,
    /// The keys that the sweep sets.
    settings: BTreeMap<&'a str, Value>,
    state: &'static str,
    /// The metrics of a finished run: of the network, of the configured head, or of the selected head.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<CellMetrics>,
    /// The metrics of the head that was trained on the labels alone, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels_alone: Option<CellMetrics>,
}

#[derive(Debug, Clone, Serialize)]
struct CellMetrics {
    selection: Selection,
    #[serde(flatten)]
    measured: ModelMetrics,
}

/// Writes `summary.csv` and `summary.json`.
pub(super) fn write_results(folder: &SweepFolder, cells: &[SweepRun<'_>]) -> Result<[PathBuf; 2]> {
    let results = cells.iter().map(|planned| result(folder, planned)).collect::<Result<Vec<_>>>()?;
    let mut json = serde_json::to_vec_pretty(&serde_json::json!({ "runs": results }))?;
    json.push(b'\n');
    Ok(folder.write_summary(&json, csv(&results)?.as_bytes())?)
}

fn result<'a>(folder: &SweepFolder, planned: &'a SweepRun<'_>) -> Result<CellResult<'a>> {
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
    let settings = settings.collect::<Result<_>>()?;
    let mut filled = CellResult {
        name: &cell.name,
        recipe: &cell.recipe,
        settings,
        state,
        result: None,
        labels_alone: None,
    };
    if let Some(result) = &result {
        for measured in model_metrics(result) {
            let metrics = CellMetrics { selection: result.selection, measured };
            let is_kept = metrics.measured.is_kept;
            match metrics.measured.head {
                Some(HeadName::Recipe) | None => filled.result = Some(metrics),
                Some(HeadName::LabelsAlone) => filled.labels_alone = Some(metrics),
                // With one vector per sample, no head is configured: the result is the selected head.
                Some(HeadName::LogisticRegression) => {
                    filled.result = if is_kept { Some(metrics.clone()) } else { filled.result };
                    filled.labels_alone = Some(metrics);
                }
                Some(
                    HeadName::Em
                    | HeadName::BalancedEm
                    | HeadName::LrEm
                    | HeadName::Neighbours
                    | HeadName::LrNeighbours,
                ) => {
                    filled.result = if is_kept { Some(metrics) } else { filled.result };
                }
            }
        }
    }
    Ok(filled)
}

/// Formats one line per run, or per head of a run with two: name, recipe, state, every key that any run sets,
/// [`DESCRIPTION_COLUMNS`], and the metrics before and after calibration.
fn csv(results: &[CellResult<'_>]) -> Result<String> {
    let keys: BTreeSet<&str> = results.iter().flat_map(|result| result.settings.keys().copied()).collect();
    let mut rows = Vec::new();
    for result in results {
        rows.push((result, serde_json::to_value(&result.result)?));
        if let Some(labels_alone) = &result.labels_alone {
            rows.push((result, serde_json::to_value(labels_alone)?));
        }
    }
    let mut names = BTreeSet::new();
    for (_, row) in &rows {
        names.extend(metrics(row, "metrics").into_iter().flat_map(|metrics| metrics.keys()));
    }
    let calibrated: Vec<String> = names.iter().map(|name| format!("calibrated_{name}")).collect();
    let head = ["name", "recipe", "state"].into_iter().chain(keys.iter().copied()).chain(DESCRIPTION_COLUMNS);
    let head =
        head.chain(names.iter().map(|name| name.as_str())).chain(calibrated.iter().map(String::as_str));
    let mut table = csv_line(head.map(CsvCell::text));
    for (result, row) in &rows {
        let mut cells = [result.name, result.recipe, result.state].map(CsvCell::text).to_vec();
        cells.extend(keys.iter().map(|key| cell(result.settings.get(key))));
        cells.extend(DESCRIPTION_COLUMNS.map(|key| cell(row.get(key))));
        for place in ["metrics", "calibrated"] {
            let metrics = metrics(row, place);
            cells.extend(names.iter().map(|name| cell(metrics.and_then(|metrics| metrics.get(*name)))));
        }
        table.push_str(&csv_line(cells));
    }
    Ok(table)
}

/// The columns that describe the metrics of a line: their head (`recipe`, `labels-alone`, …, or empty for a network), whether it
/// is the model of the run, and the samples they were measured on.
const DESCRIPTION_COLUMNS: [&str; 5] = ["head", "is_kept", "selection", "on", "samples"];

fn metrics<'a>(row: &'a Value, place: &str) -> Option<&'a serde_json::Map<String, Value>> {
    row.get(place)?.as_object()
}

/// Converts a value to a cell, which is empty for null and missing values.
fn cell(value: Option<&Value>) -> CsvCell<'_> {
    match value {
        Some(Value::String(text)) => CsvCell::text(text),
        value => CsvCell::plain(value.filter(|value| !value.is_null())),
    }
}
