//! `calmix evaluate`: how good a model is, from its weights.

use std::path::PathBuf;

use anyhow::Result;
use calmix::engine::device::Device;
use calmix::train::inspect;
use calmix::train::recipe::Layers;
use calmix::train::run::{Paths, RunFile};
use calmix::train::trainer::evaluate_run;
use clap::Args;
use serde_json::json;

use super::place::{Place, or_moved};
use crate::exit::Exit;
use crate::failure::Mistake;
use crate::number::{counted, typed};
use crate::terminal::{say, say_json, tell};
use crate::{figures, written};

/// Judge a run once more: show validation and test to its model and measure what it says
///
/// The model is the result of the run, or where it is not finished the average of its newest checkpoint. Shown are the
/// error, and how far the confidence is from the truth (ECE, 15 bins; NLL; Brier score), as it is and at the fitted
/// temperature. Nothing is written. If the dataset has moved, --data says where it is.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub(crate) struct Evaluate {
    /// The folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Where to compute: cpu, cuda, cuda:1, mps [default: as the run did]
    #[arg(long)]
    device: Option<Device>,
    /// Print one JSON document instead, for programs
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  run          the folder
  step         after how many steps the model was what it is
  scaling      temperature, fitted_on and samples, where one could be fitted; otherwise null
  evaluations  for each split, as in events.jsonl: step, split, model, samples, edges, figures,
               intervals and, at the temperature, scaled";

impl Evaluate {
    pub(crate) fn run(self) -> Result<Exit> {
        let mut resolved = inspect::recipe(&self.run)?;
        let mut changed = None;
        if !self.place.is_none() {
            let layers = Layers::new().file(&Paths::new(&self.run).file(RunFile::Recipe)?);
            let settings = self.place.settings()?;
            resolved = settings.iter().fold(layers, |layers, setting| layers.set(setting)).resolve()?;
            changed = Some(resolved.clone());
        }
        tell(&format!("judging {} …", self.run.display()));
        let command = format!("calmix evaluate {}", typed(&self.run));
        let verdict = evaluate_run(&self.run, changed, self.device)
            .map_err(|error| or_moved(error, &resolved.recipe, &command))?;
        let evaluations: Vec<_> = verdict.evaluations.iter().collect();
        let Some(first) = evaluations.first() else {
            let what =
                "this run has neither a test subset nor labels that were held out: nothing to judge it by";
            return Err(Mistake::new(what).into());
        };
        if self.json {
            say_json(&json!({
                "run": self.run.display().to_string(),
                "step": first.step,
                "scaling": verdict.scaling,
                "evaluations": evaluations,
            }))?;
            return Ok(Exit::Done);
        }
        let table = figures::table(&evaluations, true).unwrap_or_default();
        say(&format!(
            "the model after {}\n\n{table}\n{}",
            counted(first.step, "step"),
            written::next("inspect", &self.run)
        ))?;
        Ok(Exit::Done)
    }
}
