//! The training of whole networks, and the other commands that need libtorch.
//!
//! They run in the binary `calmix-torch`, which `calmix` starts. This crate re-exports the libraries that it consists of: those
//! of [`calmix`], and two on libtorch.
//!
//! | module | crate | what it does |
//! |---|---|---|
//! | [`engine`] | `calmix-engine` | networks and the training step, on libtorch |
//! | [`train`] | `calmix-train` | the trainer |
#![forbid(unsafe_code)]

mod doctor;
mod networks;

use anyhow::Result;
use calmix::args::Command;
use calmix::command;
use calmix::error::exit::Exit;
use calmix::trainer::Trainers;
use calmix_engine::device;

use crate::networks::Networks;

pub use calmix::{core, data, io, metrics, recipe, report, run};
pub use calmix_engine as engine;
pub use calmix_train as train;

#[doc(hidden)]
pub fn run_command(command: Command) -> Result<Exit> {
    match command {
        Command::Doctor(args) => doctor::run(&args),
        command => command::run(command, &Trainers::of_both(&Networks, device::fastest)),
    }
}
