//! The commands, one file each.

mod calibrate;
mod completions;
mod data_args;
mod doctor;
mod evaluate;
mod inspect;
mod predict;
mod prepare;
mod process_args;
mod quicker;
mod recipe_args;
mod recipes;
mod resume;
mod source_args;
mod train;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::exit::{self, Exit};

/// Semi-supervised image classification with calibrated confidence
#[derive(Debug, Parser)]
#[command(
    name = "calmix",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = START,
    after_long_help = format!("{START}\n\n{}", exit::TABLE)
)]
pub(crate) struct Calmix {
    #[command(subcommand)]
    command: Command,
}

const START: &str = "\
Start here:
  calmix doctor                          test this machine
  calmix prepare photos                  scan a folder of images and list its problems
  calmix train --data photos             train on it; Ctrl-C is safe
  calmix train cpu-cifar10 --data cifar-10-batches-bin

`calmix COMMAND --help` explains a command; `calmix --help` also lists the exit codes.";

#[derive(Debug, Subcommand)]
enum Command {
    Prepare(prepare::PrepareArgs),
    Train(train::TrainArgs),
    Resume(resume::ResumeArgs),
    Evaluate(evaluate::EvaluateArgs),
    Calibrate(calibrate::CalibrateArgs),
    Predict(predict::PredictArgs),
    Inspect(inspect::InspectArgs),
    Recipes(recipes::RecipesArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
}

impl Calmix {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<Exit> {
        match self.command {
            Command::Prepare(command) => command.run(),
            Command::Train(command) => command.run(),
            Command::Resume(command) => command.run(),
            Command::Evaluate(command) => command.run(),
            Command::Calibrate(command) => command.run(),
            Command::Predict(command) => command.run(),
            Command::Inspect(command) => command.run(),
            Command::Recipes(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::Completions(command) => command.run(),
        }
    }
}
