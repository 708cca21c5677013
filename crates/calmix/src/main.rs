//! The command line of calmix.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use calmix::args::Calmix;
use calmix::command;
use calmix::error;
use calmix::process::runs_here::runs_here;
use calmix::process::{processor, telemetry, torch_program};
use calmix::trainer::Trainers;
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
        command::run(calmix.command, &Trainers::of_heads(torch_program::fastest_device))
    } else {
        Err(torch_program::replace_process().into())
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => error::report(&error).into(),
    }
}
