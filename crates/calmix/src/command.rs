//! The commands, one file each.

mod calibrate;
mod compare;
mod completions;
mod data_args;
mod doctor;
mod evaluate;
mod features;
mod inspect;
#[cfg(feature = "man")]
mod man;
mod predict;
mod prepare;
mod process_args;
mod push;
mod quicker;
mod recipe_args;
mod recipes;
mod report;
mod resume;
mod source_args;
mod sweep;
mod train;
mod weights;

use anyhow::Result;
use clap::{Parser, Subcommand};

pub(crate) use data_args::existing_folder;
pub(crate) use prepare::prepare_or_stop;
pub(crate) use quicker::quicker;
pub(crate) use recipe_args::RecipeArgs;

use crate::exit::{self, Exit};
use crate::version;

/// Semi-supervised image classification with calibrated confidence
#[derive(Debug, Parser)]
#[command(
    name = "calmix",
    version,
    long_version = version::long(),
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

#[cfg(test)]
mod texts;

#[derive(Debug, Subcommand)]
enum Command {
    Prepare(prepare::PrepareArgs),
    Train(train::TrainArgs),
    Resume(resume::ResumeArgs),
    Sweep(sweep::SweepArgs),
    Evaluate(evaluate::EvaluateArgs),
    Calibrate(calibrate::CalibrateArgs),
    Predict(predict::PredictArgs),
    Inspect(inspect::InspectArgs),
    Compare(compare::CompareArgs),
    Push(push::PushArgs),
    Report(report::ReportArgs),
    Recipes(recipes::RecipesArgs),
    Weights(weights::WeightsArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
    #[cfg(feature = "man")]
    Man(man::ManArgs),
}

impl Calmix {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<Exit> {
        match self.command {
            Command::Prepare(command) => command.run(),
            Command::Train(command) => command.run(),
            Command::Resume(command) => command.run(),
            Command::Sweep(command) => command.run(),
            Command::Evaluate(command) => command.run(),
            Command::Calibrate(command) => command.run(),
            Command::Predict(command) => command.run(),
            Command::Inspect(command) => command.run(),
            Command::Compare(command) => command.run(),
            Command::Push(command) => command.run(),
            Command::Report(command) => command.run(),
            Command::Recipes(command) => command.run(),
            Command::Weights(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::Completions(command) => command.run(),
            #[cfg(feature = "man")]
            Command::Man(command) => command.run(),
        }
    }
}
