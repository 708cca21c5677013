//! The command line of calmix.
#![forbid(unsafe_code)]

mod command;
mod cores;
mod error;
mod exit;
mod format;
mod head_table;
mod labelled_folder;
mod metrics;
#[cfg(feature = "mlflow")]
mod mlflow;
mod model_folder;
mod predict;
mod processor;
mod progress;
mod replaced_table;
mod run_files;
mod run_list;
mod same_command;
mod start_notice;
mod stop;
mod summary;
mod supervise;
mod sweep;
mod terminal;
mod version;
mod weights_hint;

use std::panic;
use std::process::ExitCode;

use calmix::engine::scalar::PANICKING_FILE;
use clap::Parser;

use command::Calmix;

/// The allocator for libtorch: a step needs the same blocks as the step before, and the system's allocator returns many of
/// them to the system in between.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match processor::refusal() {
        Some(exit) => exit.into(),
        None => run(),
    }
}

/// The program on a processor that can run it; not inlined, so that no instruction of it moves before the check.
#[inline(never)]
fn run() -> ExitCode {
    silence_handled_panics();
    let calmix = Calmix::try_parse().unwrap_or_else(|error| error::exit_unparsed(&error));
    match calmix.run() {
        Ok(exit) => exit.into(),
        Err(error) => error::report(&error).into(),
    }
}

/// Hides the messages of panics that the engine turns into errors, such as out of memory.
fn silence_handled_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !info.location().is_some_and(|place| place.file().ends_with(PANICKING_FILE)) {
            print(info);
        }
    }));
}
