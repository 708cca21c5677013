//! The command line of calmix.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use calmix::command::Calmix;
use calmix::runs_here::runs_here;
use calmix::trainer::Trainers;
use calmix::{error, processor, telemetry, torch_program};
use clap::Parser;

fn main() -> ExitCode {
    match processor::refusal() {
        Some(exit) => exit.into(),
        None => run(),
    }
}

/// The program on a processor that can run it; not inlined, so that no instruction of it moves before the check.
#[inline(never)]
fn run() -> ExitCode {
    let calmix = Calmix::try_parse().unwrap_or_else(|error| error::exit_unparsed(&error));
    telemetry::restart_without(&calmix.command);
    // Before any signal handler, lock, thread or output: the other program takes this process over as it is.
    let done = if runs_here(&calmix.command, torch_program::fastest_device) {
        calmix.command.run(&Trainers::of_heads(torch_program::fastest_device))
    } else {
        Err(torch_program::replace_process().into())
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => error::report(&error).into(),
    }
}
