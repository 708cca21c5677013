//! The predictions of an evaluation, sample by sample, with file names.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_io::shown::shown;
use calmix_metrics::measure::TopLabel;
use calmix_metrics::predictions::Predictions;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::run::Paths;
use serde_json::{Value, json};

use super::inspect_output::InspectOutput;
use crate::output::format::{counted, grouped, percent};

/// Shows the predictions in a file of a run.
pub(super) fn inspect(file: &Path) -> Result<InspectOutput> {
    let file = file.canonicalize()?;
    let run = file.parent().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
    let dataset = dataset(&run)?;
    let predictions = read::predictions(&file, dataset.len(), dataset.classes().len())?;
    let top = TopLabel::from_logits(predictions.matrix()?, &predictions.labels, 1.0)?;
    let class = |label: usize| predictions.classes.get(label).map_or("", String::as_str);
    let width = predictions.classes.len().max(1);
    let mut rows = Vec::with_capacity(predictions.ids.len());
    for (row, (&id, &label)) in predictions.ids.iter().zip(&predictions.labels).enumerate() {
        let logits = predictions.logits.iter().skip(row * width).take(width);
        // The first of equal logits wins, as in every other place.
        let best = logits.enumerate().fold((0, f32::NEG_INFINITY), |best, (label, &logit)| {
            if logit > best.1 { (label, logit) } else { best }
        });
        rows.push(json!({
            "sample": dataset.sample_name(id)?,
            "label": class(label as usize),
            "predicted": class(best.0),
            "confidence": top.confidence().get(row),
        }));
    }
    let json = json!({
        "kind": "predictions",
        "file": file.display().to_string(),
        "step": predictions.step,
        "split": predictions.split,
        "model": predictions.model,
        "predictions": rows,
    });
    Ok(InspectOutput { text: table(&predictions, &json), json })
}

/// Opens the table of the run's samples; the dataset itself need not exist.
fn dataset(run: &Path) -> Result<Dataset> {
    let recipe = inspect::recipe(run)?.recipe;
    let table = match recipe.dataset.prepared.as_str() {
        "" => Paths::new(run).prepared().to_path_buf(),
        table => PathBuf::from(table),
    };
    Ok(Dataset::open(&table, &table)?)
}

fn table(predictions: &Predictions, json: &Value) -> String {
    let rows = json["predictions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |row: &Value, key: &str| shown(row[key].as_str().unwrap_or_default());
    let wrong = rows.iter().filter(|row| row["label"] != row["predicted"]).count() as u64;
    let line = |row: &Value| {
        let label = text(row, "label");
        let predicted = text(row, "predicted");
        let outcome =
            if label == predicted { "correct".to_owned() } else { format!("wrong, the label is {label}") };
        let confidence = percent(row["confidence"].as_f64().unwrap_or_default(), None);
        format!("  {}  {predicted}, {confidence}: {outcome}\n", text(row, "sample"))
    };
    let all = counted(rows.len() as u64, "prediction");
    let step = grouped(predictions.step);
    format!(
        "{all} after step {step}\n{} wrong; the confidence is uncalibrated\n\n{}",
        grouped(wrong),
        rows.iter().map(line).collect::<String>()
    )
}
