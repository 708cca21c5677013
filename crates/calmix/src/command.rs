//! The commands: one file each. Their arguments are in [`args`](crate::args).

mod compare;
mod completions;
mod evaluate;
mod export;
mod guarantees;
mod inspect;
mod labelling;
#[cfg(feature = "man")]
mod man;
mod predict;
mod prepare;
#[cfg(feature = "https")]
mod push;
mod recipes;
mod report;
mod resume;
mod sweep;
mod train;
mod weights;

use anyhow::Result;

use crate::args::Command;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::error::explained_error::explained;
use crate::trainer::Trainers;

/// Runs a command. Runs are trained and evaluated by the trainer of their recipe.
pub fn run(command: Command, trainers: &Trainers<'_>) -> Result<Exit> {
    match command {
        Command::Prepare(command) => command.run(),
        Command::Predict(args) => predict::run(&args).map_err(explained),
        Command::Guard(args) => guarantees::guard::run(&args).map_err(explained),
        Command::Monitor(args) => guarantees::monitor::run(&args).map_err(explained),
        Command::Export(args) => export::run(&args).map_err(explained),
        Command::Inspect(command) => command.run(),
        Command::Label(command) => command.run(),
        Command::Compare(command) => command.run(),
        #[cfg(feature = "https")]
        Command::Push(command) => command.run(),
        #[cfg(not(feature = "https"))]
        Command::Push(_) => Err(CliError::without_https("calmix push").into()),
        Command::Report(command) => command.run(),
        Command::Recipes(command) => command.run(),
        Command::Weights(command) => command.run().map_err(explained),
        Command::Completions(command) => command.run(),
        #[cfg(feature = "man")]
        Command::Man(command) => command.run(),
        Command::Demo(args) => labelling::demo::run(&args, trainers).map_err(explained),
        Command::Review(args) => labelling::review::run(&args).map_err(explained),
        Command::Certify(args) => labelling::certify::run(&args).map_err(explained),
        Command::Verify(args) => labelling::verify::run(&args).map_err(explained),
        Command::Train(args) => train::run(&args, trainers).map_err(explained),
        Command::Resume(args) => resume::run(&args, trainers).map_err(explained),
        Command::Calibrate(args) => guarantees::calibrate::run(&args).map_err(explained),
        Command::Evaluate(args) => evaluate::run(&args, trainers).map_err(explained),
        Command::Sweep(args) => sweep::run(&args, trainers).map_err(explained),
        Command::Doctor(_) => Err(CliError::failed("this command runs in calmix-torch").into()),
    }
}
