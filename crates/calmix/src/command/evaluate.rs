//! `calmix evaluate`: how good a model is, from its weights.

use std::path::PathBuf;

use anyhow::Result;
use calmix::engine::device::Device;
use calmix::train::inspect;
use calmix::train::trainer::evaluate_run;
use clap::Args;

use crate::exit::Exit;
use crate::failure::Mistake;
use crate::figures;
use crate::number::counted;
use crate::terminal::{say, tell};
use crate::written;

/// Judge a run once more: show validation and test to its model and measure what it says
///
/// The model is the result of the run, or where it is not finished the average of its newest checkpoint. Shown are the
/// error, and how far the confidence is from the truth (ECE, 15 bins; NLL; Brier score), as it is and at the fitted
/// temperature. Nothing is written.
#[derive(Debug, Args)]
pub(crate) struct Evaluate {
    /// The folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Where to compute: cpu, cuda, cuda:1, mps [default: as the run did]
    #[arg(long)]
    device: Option<Device>,
}

impl Evaluate {
    pub(crate) fn run(self) -> Result<Exit> {
        inspect::recipe(&self.run)?;
        tell(&format!("judging {} …", self.run.display()));
        let verdict = evaluate_run(&self.run, self.device)?;
        let evaluations: Vec<_> = verdict.evaluations.iter().collect();
        let Some(first) = evaluations.first() else {
            let what =
                "this run has neither a test subset nor labels that were held out: nothing to judge it by";
            return Err(Mistake::new(what).into());
        };
        let table = figures::table(&evaluations, true).unwrap_or_default();
        say(&format!(
            "the model after {}\n\n{table}\n{}",
            counted(first.step, "step"),
            written::next("inspect", &self.run)
        ))?;
        Ok(Exit::Done)
    }
}
