//! `calmix evaluate`: evaluates the model of a run.

mod on_folder;
mod votes;

use std::io;
use std::path::PathBuf;

use anyhow::Error;
use anyhow::Result;
use calmix::data::error::DataProblem;
use calmix::io::shown::shown;
use calmix::metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix::recipe::Recipe;
use calmix::recipe::device::Device;
use calmix::train::inspect;
use calmix::train::trainer::{TrainError, evaluate_run};
use clap::Args;
use serde_json::json;

use super::data_args::{DataArgs, explain_moved};
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::{counted, shell_quoted};
use crate::metrics::{self, CalibratorState};
use crate::run_files;
use crate::terminal::{print, print_json, status, warn};
use on_folder::OnArgs;

/// Evaluate the model of a run on its validation and test splits
///
/// Evaluates the result of the run or, before the run is finished, the EMA weights of its newest checkpoint. Prints error,
/// confidence gap, NLL and Brier score with confidence intervals, before and after calibration, and the ECE (15 bins) if
/// there are at least 1,000 images. Writes no files. If the dataset has moved, name its new folder with --data. --on
/// evaluates a finished run on other labelled images; classes are matched by name.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub(crate) struct EvaluateArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    on: OnArgs,
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
  calibration  the calibrator of the confidence, as in model.json; null if there is none
  evaluations  one per split, as in events.jsonl: step, split, model, samples, edges, metrics,
               class_accuracy, bins (reliability), intervals, and calibrated (the same after
               calibration)

Fields of --json with --on:
  run, on, subset, calibration
  evaluation   as above
  sets         coverage and mean size of the 90% prediction sets; null without held-out labels
  answers      share of the images that are answered at 90% precision, and the measured precision
  votes        with --votes: samples, entropy (of the votes), cross_entropy,
               calibrated_cross_entropy, correlation (Spearman's, of confidence and agreement)";

impl EvaluateArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        if let Some(exit) = self.on.run(&self.run, self.device, self.json)? {
            return Ok(exit);
        }
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
            .map_err(|error| self.explain_other(error, &resolved.recipe, &command))?;
        let evaluations: Vec<_> = output.evaluations.iter().collect();
        let Some(first) = evaluations.first() else {
            let message =
                "this run has no test subset and no held-out labels, so there is nothing to evaluate on";
            return Err(CliError::invalid(message).hint(format!("{command} --on FOLDER")).into());
        };
        for seen in evaluations.iter().filter(|seen| seen.skipped > 0) {
            let (split, all) = (seen.split.name(), seen.samples + seen.skipped);
            let first = output.corrupt.as_deref().unwrap_or_default();
            warn(&format!(
                "{} of {all} {split} samples are corrupt and were left out ({first})",
                seen.skipped
            ));
        }
        if self.json {
            print_json(&json!({
                "run": self.run.display().to_string(),
                "step": first.step,
                "scaling": output.map().and_then(FittedCalibrator::scaling),
                "calibration": output.map(),
                "evaluations": evaluations,
            }))?;
            return Ok(Exit::Done);
        }
        let why = output.fitted.as_ref().and_then(Fitted::nothing);
        let table = metrics::table(&evaluations, CalibratorState::Ended(why.as_ref())).unwrap_or_default();
        print(&format!(
            "model after {}\n\n{table}\n{}",
            counted(first.step, "step"),
            run_files::next_with_model(&self.run)
        ))?;
        Ok(Exit::Done)
    }

    /// Replaces the error about a file that is missing below `--data`: the folder is not the dataset of the run.
    fn explain_other(&self, error: TrainError, recipe: &Recipe, command: &str) -> Error {
        let Some(data) = self.data.named().filter(|data| data.is_dir()) else {
            return explain_moved(error, recipe, command);
        };
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |cause| cause.source());
        let mut problems = causes.filter_map(|cause| cause.downcast_ref::<DataProblem>());
        let is_missing = |problem: &DataProblem| matches!(problem, DataProblem::Io(error) if error.kind() == io::ErrorKind::NotFound);
        if !problems.any(is_missing) {
            return explain_moved(error, recipe, command);
        }
        let message =
            format!("{}: not the dataset that the run was trained on: {error}", shown(data.display()));
        let hint = format!("{command} --on {}, for other labelled images", shell_quoted(data));
        CliError::invalid(message).hint(hint).into()
    }
}
