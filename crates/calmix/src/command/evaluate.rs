//! `calmix evaluate`: evaluates the model of a run.

use std::path::PathBuf;

use anyhow::Result;
use calmix::core::shown::shown;
use calmix::engine::device::Device;
use calmix::train::inspect;
use calmix::train::trainer::evaluate_run;
use clap::Args;
use serde_json::json;

use super::data_args::{DataArgs, explain_moved};
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::{counted, shell_quoted};
use crate::terminal::{print, print_json, status, warn};
use crate::{figures, run_files};

/// Evaluate the model of a run on its validation and test splits
///
/// The model is the result of the run or, before the run is finished, the EMA weights of its newest checkpoint. Prints
/// error, ECE (15 bins), NLL and Brier score, uncalibrated and at the fitted temperature, and says by how much the model is
/// over- or under-confident. Writes no files. If the dataset
/// has moved, name its new folder with --data.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub(crate) struct EvaluateArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    /// Device: cpu, cuda, cuda:1, mps [default: that of the run]
    #[arg(long)]
    device: Option<Device>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  run          folder of the run
  step         training steps of the model
  scaling      temperature, fitted_on and samples; null if no temperature could be fitted
  evaluations  one per split, as in events.jsonl: step, split, model, samples, edges, figures,
               class_accuracy, bins (reliability), intervals, and scaled (the same at the
               fitted temperature)";

impl EvaluateArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let mut resolved = inspect::recipe(&self.run)?;
        let mut changed = None;
        if !self.data.is_empty() {
            let layers = inspect::recipe_layers(&self.run)?;
            let settings = self.data.settings()?;
            resolved = settings.iter().fold(layers, |layers, setting| layers.set(setting)).resolve()?;
            changed = Some(resolved.clone());
        }
        status(&format!("evaluating {} …", shown(self.run.display())));
        let command = format!("calmix evaluate {}", shell_quoted(&self.run));
        let output = evaluate_run(&self.run, changed, self.device)
            .map_err(|error| explain_moved(error, &resolved.recipe, &command))?;
        let evaluations: Vec<_> = output.evaluations.iter().collect();
        let Some(first) = evaluations.first() else {
            let message =
                "this run has no test subset and no held-out labels, so there is nothing to evaluate on";
            return Err(CliError::invalid(message).into());
        };
        for seen in evaluations.iter().filter(|seen| seen.skipped > 0) {
            let (split, all) = (seen.split.name(), seen.samples + seen.skipped);
            let first = output.corrupt.as_deref().unwrap_or_default();
            warn(&format!("{} of {all} {split} samples are corrupt and left out ({first})", seen.skipped));
        }
        if self.json {
            print_json(&json!({
                "run": self.run.display().to_string(),
                "step": first.step,
                "scaling": output.scaling,
                "evaluations": evaluations,
            }))?;
            return Ok(Exit::Done);
        }
        let table = figures::table(&evaluations, true).unwrap_or_default();
        print(&format!(
            "model after {}\n\n{table}\n{}",
            counted(first.step, "step"),
            run_files::next("inspect", &self.run)
        ))?;
        Ok(Exit::Done)
    }
}
