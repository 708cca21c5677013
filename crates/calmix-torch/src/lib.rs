//! calmix on images: [`Model`], a trained model in use, and the commands that need libtorch.
//!
//! The binary `calmix-torch` runs them; `calmix` starts it. This crate re-exports the libraries that it consists of: those of
//! [`calmix`], and two on libtorch.
//!
//! | module | crate | what it does |
//! |---|---|---|
//! | [`engine`] | `calmix-engine` | networks and the training step, on libtorch |
//! | [`train`] | `calmix-train` | the trainer |
#![forbid(unsafe_code)]

mod build_info;
mod command;
mod explained_error;
mod labelled_folder;
mod launch_args;
pub mod model;
mod moved_dataset;
mod predict;
mod start_notice;
mod summary;
mod supervise;
mod sweep_cell;

use anyhow::Result;
use calmix::command::Command;
use calmix::exit::Exit;
use calmix::runs_here::runs_here;

pub use calmix::{core, data, io, metrics, recipe, report, run};
pub use calmix_engine as engine;
pub use calmix_train as train;
pub use model::Model;

/// Compiles the example of this page as a doctest of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/use-the-model.md")]
struct UseTheModel;

/// Runs a command.
#[doc(hidden)]
pub fn run_command(command: Command) -> Result<Exit> {
    if runs_here(&command) {
        return command.run();
    }
    let done = match command {
        Command::Train(args) => command::train::run(&args),
        Command::Resume(args) => command::resume::run(&args),
        Command::Sweep(args) => command::sweep::run(&args),
        Command::Evaluate(args) => command::evaluate::run(&args),
        Command::Calibrate(args) => command::calibrate::run(&args),
        Command::Predict(args) => command::predict::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        other => other.run(),
    };
    done.map_err(explained_error::explained)
}
