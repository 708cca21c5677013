//! The commands: one file each for those that run here, and the arguments of all.

mod calibrate;
pub mod calibrate_args;
mod compare;
mod completions;
pub mod data_args;
pub mod doctor_args;
mod evaluate;
pub mod evaluate_args;
mod export;
pub mod export_args;
mod inspect;
pub mod labelled_args;
#[cfg(feature = "man")]
mod man;
mod predict;
pub mod predict_args;
pub mod prepare;
pub mod process_args;
mod push;
pub mod recipe_args;
mod recipes;
mod report;
mod resume;
pub mod resume_args;
pub mod source_args;
mod sweep;
pub mod sweep_args;
mod train;
pub mod train_args;
mod train_features;
mod weights;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::error::CliError;
use crate::exit::{self, Exit};
use crate::explained_error::explained;
use crate::trainer::Trainers;
use crate::version;

/// Semi-supervised image classification with calibrated confidence
#[derive(Debug, Parser)]
#[command(
    name = "calmix",
    // Whichever of the two programs parses.
    bin_name = "calmix",
    version,
    long_version = version::long(),
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = START,
    after_long_help = format!("{START}\n\n{}", exit::TABLE)
)]
pub struct Calmix {
    #[command(subcommand)]
    pub command: Command,
}

const START: &str = "\
Start here:
  calmix doctor                          test this machine
  calmix prepare photos                  scan a folder of images and list its problems
  calmix train --data photos             train on it; Ctrl-C is safe
  calmix train --features vectors.npy --labels labels.csv
  calmix train cpu-cifar10 --data cifar-10-batches-bin

`calmix COMMAND --help` explains a command; `calmix --help` also lists the exit codes.";

#[cfg(test)]
mod texts;

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    Prepare(prepare::PrepareArgs),
    Train(train_args::TrainArgs),
    Resume(resume_args::ResumeArgs),
    Sweep(sweep_args::SweepArgs),
    Evaluate(evaluate_args::EvaluateArgs),
    Calibrate(calibrate_args::CalibrateArgs),
    Predict(predict_args::PredictArgs),
    Export(export_args::ExportArgs),
    Inspect(inspect::InspectArgs),
    Compare(compare::CompareArgs),
    Push(push::PushArgs),
    Report(report::ReportArgs),
    Recipes(recipes::RecipesArgs),
    Weights(weights::WeightsArgs),
    Doctor(doctor_args::DoctorArgs),
    Completions(completions::CompletionsArgs),
    #[cfg(feature = "man")]
    Man(man::ManArgs),
}

impl Command {
    /// Runs a command; what trains or evaluates a run is done by the trainer of its recipe.
    pub fn run(self, trainers: &Trainers<'_>) -> Result<Exit> {
        match self {
            Self::Prepare(command) => command.run(),
            Self::Predict(args) => predict::run(&args).map_err(explained),
            Self::Export(args) => export::run(&args).map_err(explained),
            Self::Inspect(command) => command.run(),
            Self::Compare(command) => command.run(),
            Self::Push(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Recipes(command) => command.run(),
            Self::Weights(command) => command.run().map_err(explained),
            Self::Completions(command) => command.run(),
            #[cfg(feature = "man")]
            Self::Man(command) => command.run(),
            Self::Train(args) => train::run(&args, trainers).map_err(explained),
            Self::Resume(args) => resume::run(&args, trainers).map_err(explained),
            Self::Calibrate(args) => calibrate::run(&args).map_err(explained),
            Self::Evaluate(args) => evaluate::run(&args, trainers).map_err(explained),
            Self::Sweep(args) => sweep::run(&args, trainers).map_err(explained),
            Self::Doctor(_) => Err(CliError::failed("this command runs in calmix-torch").into()),
        }
    }
}
