//! The training of whole networks by calmix: the commands that need libtorch.
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
mod launch_args;
mod network_cell;
mod supervise;

use anyhow::Result;
use calmix::command::Command;
use calmix::exit::Exit;
use calmix::runs_here::runs_here;
use calmix_engine::device;

pub use calmix::{core, data, formats, io, metrics, recipe, report, run};
pub use calmix_engine as engine;
pub use calmix_train as train;

/// Runs a command.
#[doc(hidden)]
pub fn run_command(command: Command) -> Result<Exit> {
    if runs_here(&command, device::fastest) {
        return command.run(device::fastest);
    }
    let done = match command {
        Command::Train(args) => command::train::run(&args),
        Command::Resume(args) => command::resume::run(&args),
        Command::Sweep(args) => command::sweep::run(&args),
        Command::Evaluate(args) => command::evaluate::run(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        other => other.run(device::fastest),
    };
    done.map_err(explained_error::explained)
}
