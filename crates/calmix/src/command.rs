//! The commands, one file each.

mod changes;
mod completions;
mod doctor;
mod evaluate;
mod inspect;
mod many;
mod place;
mod prepare;
mod recipes;
mod resume;
mod train;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::exit::{self, Exit};

/// Trains image classifiers from a few labels and many unlabelled images, and makes their confidence true
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
  calmix doctor                           does everything work on this machine?
  calmix prepare photos                   what is in this folder, and what is wrong with it?
  calmix train desk-folder --data photos  learn from it in minutes; Ctrl-C is safe
  calmix train desk-cifar10 --data cifar-10-batches-bin

`calmix COMMAND --help` explains a command, `calmix --help` also the exit codes.";

#[derive(Debug, Subcommand)]
enum Command {
    Prepare(prepare::Prepare),
    Train(train::Train),
    Resume(resume::Resume),
    Evaluate(evaluate::Evaluate),
    Inspect(inspect::Inspect),
    Recipes(recipes::Recipes),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

impl Calmix {
    /// Does what was asked for.
    pub(crate) fn run(self) -> Result<Exit> {
        match self.command {
            Command::Prepare(command) => command.run(),
            Command::Train(command) => command.run(),
            Command::Resume(command) => command.run(),
            Command::Evaluate(command) => command.run(),
            Command::Inspect(command) => command.run(),
            Command::Recipes(command) => command.run(),
            Command::Doctor(command) => command.run(),
            Command::Completions(command) => command.run(),
        }
    }
}
