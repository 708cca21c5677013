//! The command line: what is typed, what is shown, and how a command ends.
#![forbid(unsafe_code)]

mod claim;
mod command;
mod cores;
mod exit;
mod failure;
mod figures;
mod number;
mod opening;
mod preparing;
mod progress;
mod source;
mod stop;
mod supervise;
mod terminal;
mod unknown_option;
mod written;

use std::process::ExitCode;

use clap::Parser;

use command::Calmix;

/// For libtorch: a step asks for the same blocks as the step before, and the system's allocator gives many of them back
/// in between.
#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let asked = Calmix::try_parse().unwrap_or_else(|error| unknown_option::exit(&error));
    match asked.run() {
        Ok(exit) => exit.into(),
        Err(error) => failure::tell(&error).into(),
    }
}
