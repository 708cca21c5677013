//! The chores of the workspace: `cargo xtask check`, `setup`, `publish`, `man`, `weights` and `bench`.
//!
//! What the build service runs is what a person runs: `.ci/run` calls `setup` and then `check`, nothing else.
#![forbid(unsafe_code)]
// A command-line tool speaks to its user.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod cache;
mod check;
mod human_time;
mod man;
mod setup;
mod weights;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  check [quick | --nightly] [STEP...]
                    the checks of every push, cheapest first: `quick` before a commit, `--nightly` with all
                    combinations; or only the named ones
  warm              compile what `check` needs, as far as that is possible before `setup` has ended
  setup             install what this machine lacks: tools for `check`, and libtorch
  publish           pack the crates that need no libtorch and compile each from its package; uploads nothing
  man FOLDER        write the manual pages of calmix
  weights [NAME...] fetch pretrained weights and convert them to safetensors: all, or only the named ones
  bench NAME [--json] [--repeat N]
                    measure ours and theirs side by side; `cargo xtask bench` lists the names

Tools, Python environments and weights live in $CALMIX_CACHE, or calmix in $XDG_CACHE_HOME or ~/.cache.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["check", steps @ ..] => check::run(steps),
        ["warm"] => check::warm(),
        ["setup"] => setup::run(),
        ["publish"] => check::publish::check(),
        ["man", folder] => man::write(folder),
        ["weights", names @ ..] => weights::run(names),
        ["bench", rest @ ..] => bench::run(rest),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}
