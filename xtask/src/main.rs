//! Development tasks of the workspace: `cargo xtask check`, `setup`, `publish`, `wheels`, `release`, `wasm`, `man`,
//! `weights`, `images`, `site` and `bench`.
//!
//! CI runs the same commands as a developer: `.ci/run` calls `setup` and then `check`, nothing else.
#![forbid(unsafe_code)]
// A command-line tool prints to its user.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod cache;
mod check;
mod human_time;
mod images;
mod man;
mod release;
mod setup;
mod site;
mod wasm;
mod weights;
mod wheels;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  check [quick | --nightly] [STEP...]
                    run the checks of every push, cheapest first; `quick`: those before a commit;
                    `--nightly`: all combinations; STEP: only the named ones
  warm              compile what does not need libtorch, while `setup` is still running
  setup             install what is missing: the tools for `check`, and libtorch
  publish           package the crates that do not need libtorch and compile them; uploads nothing
  wheels [--out FOLDER] [--profile PROFILE] [--target TARGET] [NAME...]
                    build Python wheels (calmix, calmix-weights, calmix-cpu, calmix-torch) into FOLDER
                    (default: dist); TARGET: a platform of the wheel calmix, or `all`
  wheels test [--out FOLDER]
                    install the wheels in FOLDER into new environments and run them
  release [--out FOLDER] [--tag TAG] [--built]
                    do everything of a release but the upload: check versions and the changelog, build the
                    wheels of all platforms (not with --built) and check them
  wasm              compile the program in the page of `calmix review --live` and write it into the repository
  man FOLDER        write the manual pages of calmix
  weights [NAME...] download pretrained weights as safetensors: all, or only the named ones
  images [NAME...]  draw the images of the documentation from real runs: all, or only predictions,
                    comparison, report or recording
  site              build the documentation as a site, with the pages of cargo doc, in the target folder
  bench NAME [--json] [--repeat N]
                    measure calmix and a peer side by side; `cargo xtask bench` lists the names

Tools, Python environments and weights are stored in $CALMIX_CACHE (default: calmix below
$XDG_CACHE_HOME or ~/.cache).";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["check", steps @ ..] => check::run(steps),
        ["warm"] => check::warm(),
        ["setup"] => setup::run(),
        ["publish"] => check::publish::check(),
        ["wheels", rest @ ..] => wheels::run(rest),
        ["release", rest @ ..] => release::run(rest),
        ["wasm"] => wasm::write(),
        ["man", folder] => man::write(folder),
        ["weights", names @ ..] => weights::run(names),
        ["images", names @ ..] => images::run(names),
        ["site"] => site::run(),
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
