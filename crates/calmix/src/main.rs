//! The command line of calmix.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use calmix::args::Calmix;
use calmix::process::torch_program::runs_without_libtorch;
use calmix::process::{startup, torch_program};
use calmix::trainer::Trainers;
use calmix::{command, error};
use clap::Parser;

fn main() -> ExitCode {
    match startup::refuse_old_processor() {
        Some(exit) => exit.into(),
        None => run(),
    }
}

/// Runs the program, on a processor that supports it. Not inlined, so that none of its instructions moves before the check of the
/// processor.
#[inline(never)]
fn run() -> ExitCode {
    let calmix = Calmix::try_parse().unwrap_or_else(|error| error::exit_unparsed(&error));
    startup::restart_without_telemetry(&calmix.command);
    // Before any signal handler, lock, thread or output: `calmix-torch` inherits the process as it is.
    let done = if runs_without_libtorch(&calmix.command, torch_program::fastest_device) {
        command::run(calmix.command, &Trainers::of_heads(torch_program::fastest_device))
    } else {
        Err(torch_program::replace_process().into())
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => error::report(&error).into(),
    }
}
