//! The executable that links libtorch. `calmix` replaces itself by it to train a network; it can run every command.
#![forbid(unsafe_code)]

use std::panic;
use std::process::ExitCode;

use calmix::args::Calmix;
use calmix::error;
use calmix::process::{startup, torch_program};
use calmix_torch::engine::scalar::PANICKING_FILE;
use calmix_torch::run_command;
use clap::Parser;

/// The allocator for libtorch. A step needs blocks of the same sizes as the step before; the system's allocator would return many
/// of them to the system in between.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
    if let Err(other) = torch_program::check_caller() {
        return error::report(&other.into()).into();
    }
    silence_handled_panics();
    let calmix = Calmix::try_parse().unwrap_or_else(|error| error::exit_unparsed(&error));
    startup::restart_without_telemetry(&calmix.command);
    match run_command(calmix.command) {
        Ok(exit) => exit.into(),
        Err(error) => error::report(&error).into(),
    }
}

/// Hides the messages of panics that the engine turns into errors, such as running out of memory.
fn silence_handled_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !info.location().is_some_and(|place| place.file().ends_with(PANICKING_FILE)) {
            print(info);
        }
    }));
}
