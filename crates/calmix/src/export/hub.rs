//! What a repository of the Hugging Face Hub has beside an exported model: the reliability diagram of its card, and its notes as
//! `config.json`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calmix_report::plot;
use calmix_report::report::RunsReport;
use calmix_report::svg::Drawing;
use calmix_run::pretrained::config::CONFIG;
use serde_json::{Map, Value, json};

use super::export_folder::Files;

/// The name of the reliability diagram.
pub(crate) const DIAGRAM: &str = "calibration.svg";

/// Draws the reliability diagram of a run on its test samples, or else on other labels out of training; `None` if it has no
/// predictions of any.
pub(crate) fn reliability_diagram(run: &Path) -> Result<Option<String>> {
    let report = RunsReport::read(&[run], false)?;
    let view = plot::all(&report).into_iter().find(|view| view.name == "reliability");
    Ok(view.map(|view| Drawing::beside(&view.panels).file()))
}

/// Adds the notes of the model to `config.json`, which timm's models have already.
pub(crate) fn add_config(files: &mut Files, metadata: &[(String, String)]) -> Result<()> {
    let known = files.iter().position(|(name, _)| name == Path::new(CONFIG));
    let mut config: Map<String, Value> = match known {
        Some(place) => serde_json::from_slice(&files.swap_remove(place).1).context("config.json of timm")?,
        None => Map::new(),
    };
    // Values other than words are JSON.
    let note = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    let notes: Map<String, Value> = metadata.iter().map(|(key, text)| (key.clone(), note(text))).collect();
    config.insert("calmix".to_owned(), Value::Object(notes));
    files.push((PathBuf::from(CONFIG), format!("{:#}\n", Value::Object(config)).into_bytes()));
    Ok(())
}
