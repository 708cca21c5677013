//! The command line of calmix.
#![forbid(unsafe_code)]

mod backbone;
mod beside;
mod command;
mod cores;
mod error;
mod exit;
mod figures;
mod format;
mod head_table;
mod labelled_folder;
mod mlflow;
mod predict;
mod preparing;
mod progress;
mod run_data;
mod run_dir;
mod run_files;
mod shared_table;
mod source;
mod stop;
mod summary;
mod supervise;
mod sweep;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use command::Calmix;

/// For libtorch: a step asks for the same blocks as the step before, and the system's allocator gives many of them back
/// in between.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let calmix = Calmix::try_parse().unwrap_or_else(|error| error::exit_unparsed(&error));
    match calmix.run() {
        Ok(exit) => exit.into(),
        Err(error) => error::report(&error).into(),
    }
}
