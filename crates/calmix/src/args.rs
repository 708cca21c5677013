//! The arguments of all commands.

pub mod compare;
pub mod completions;
pub mod doctor;
pub mod evaluate;
pub mod export;
pub mod guarantees;
pub mod inspect;
pub mod labelling;
#[cfg(feature = "man")]
pub mod man;
pub mod options;
pub mod predict;
pub mod prepare;
pub mod push;
pub mod recipes;
pub mod report;
pub mod resume;
pub mod sweep;
pub mod train;
pub mod weights;

use clap::{Parser, Subcommand};

use crate::error::exit;
use crate::process::version;

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
  calmix demo                            train on images that it draws, and review their labels
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
    Demo(labelling::demo::DemoArgs),
    Review(labelling::review::ReviewArgs),
    Label(labelling::label::LabelArgs),
    Certify(labelling::certify::CertifyArgs),
    Verify(labelling::verify::VerifyArgs),
    Train(train::TrainArgs),
    Resume(resume::ResumeArgs),
    Sweep(sweep::SweepArgs),
    Evaluate(evaluate::EvaluateArgs),
    Calibrate(guarantees::calibrate::CalibrateArgs),
    Predict(predict::PredictArgs),
    Guard(guarantees::guard::GuardArgs),
    Monitor(guarantees::monitor::MonitorArgs),
    Export(export::ExportArgs),
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
