//! `cargo xtask bench`: calmix and its peers, side by side on the same machine in the same run.
//!
//! All sides are processes that prepare a case and then repeat it on command ([`worker`] has the protocol), so start-up is not
//! measured. Repetitions alternate between the sides, and so does the side that goes first, so a change in the machine's speed
//! affects all of them. The result is the median of each side.
//!
//! criterion, divan and hyperfine are not used: they measure one side after the other, and none starts a peer in Python.

mod catalogue;
mod files;
mod measurement;
mod memory;
mod sides;
mod worker;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::setup::venv;
use crate::workspace;
use catalogue::{BENCHES, Bench, Case, Peer, Program, Sides};
use measurement::{Measurement, median};
use sides::Comparison;
use worker::{Turns, Worker};

/// The default number of repetitions, enough that a single outlier does not change the median.
const DEFAULT_REPEAT: usize = 9;

/// The command line.
#[derive(Debug, PartialEq)]
struct Request {
    name: String,
    json: bool,
    repeat: usize,
}

/// Measures every case of a bench, and prints a table or one JSON object per line.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let request = request(arguments)?;
    let bench = BENCHES.iter().find(|bench| bench.name == request.name);
    let bench = bench.with_context(|| format!("there is no bench `{}`; {}", request.name, names()))?;
    let (mut lines, mut tables) = (Vec::new(), Vec::new());
    for case in bench.cases {
        if let Some(reason) = reason_to_skip(case) {
            eprintln!("bench: skipped, because {reason}: {}", case.name);
            continue;
        }
        let (names, turns) = measure(bench, case, request.repeat)?;
        let json = match &case.sides {
            Sides::Pair { .. } => {
                let line = pair(bench, case, turns)?;
                let json = line.json();
                lines.push(line);
                json
            }
            Sides::Named { wanted, .. } => {
                let table = Comparison::new(bench.name, case, &names, &turns, wanted)?;
                let json = table.json();
                tables.push(table.to_string());
                json
            }
        };
        if request.json {
            println!("{json}");
        }
    }
    if !request.json {
        println!("{}: {}; median of {}", bench.name, bench.what, request.repeat);
        tables.extend((!lines.is_empty()).then(|| measurement::pairs_table(&lines)));
        println!("{}", tables.join("\n\n"));
    }
    Ok(())
}

fn request(arguments: &[&str]) -> Result<Request> {
    let (mut name, mut json, mut repeat) = (None, false, DEFAULT_REPEAT);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "--json" => json = true,
            "--repeat" => {
                let count = rest.next().and_then(|count| count.parse().ok()).filter(|count| *count > 0);
                repeat = count.context("--repeat needs a number above zero")?;
            }
            flag if flag.starts_with('-') => {
                bail!("bench has no option `{flag}`; it has --json and --repeat N")
            }
            given if name.is_none() => name = Some(given.to_owned()),
            second => bail!("bench takes one name, but `{second}` is a second one"),
        }
    }
    let name = name.with_context(|| format!("bench needs a name; {}", names()))?;
    Ok(Request { name, json, repeat })
}

fn names() -> String {
    let lines: Vec<String> =
        BENCHES.iter().map(|bench| format!("\n  {:<9} {}", bench.name, bench.what)).collect();
    format!("the names are:{}", lines.concat())
}

/// Returns the reason why the case cannot be measured here, if any.
fn reason_to_skip(case: &Case) -> Option<String> {
    let is_missing = |program: &&&str| Command::new(program).arg("--version").output().is_err();
    let program = case.extra.as_ref().and_then(|extra| extra.programs.iter().find(is_missing));
    if let Some(program) = program {
        return Some(format!("{program} is not installed"));
    }
    let files = case.files.as_ref().filter(|files| files.made.is_none())?;
    let missing = files::dataset(files).is_none();
    missing.then(|| format!("the folder CALMIX_DATASETS does not contain {}", files.dataset))
}

/// Builds calmix with the features of the case. Cargo keeps the builds of other cases.
fn build(case: &Case) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--quiet", "--locked", "--package", "calmix-bench"]);
    if let Some(extra) = &case.extra {
        command.args(["--features", extra.feature]);
    }
    let status = command.status().context("cannot start cargo build")?;
    ensure!(status.success(), "calmix-bench does not build: `cargo build --release -p calmix-bench`");
    Ok(())
}

/// Measures a case; returns the names of the sides and their measurements.
fn measure(bench: &Bench, case: &Case, repeat: usize) -> Result<(Vec<&'static str>, Vec<Turns>)> {
    build(case)?;
    let folder = case.files.as_ref().map(files::folder).transpose()?.flatten();
    let ours = |arguments: &[&str]| -> Result<Command> {
        let mut command = Command::new(our_program()?);
        command.arg(bench.name).args(arguments).args(&folder);
        Ok(command)
    };
    let commands = match &case.sides {
        Sides::Pair { arguments, peer } => {
            let mut commands = vec![("ours", ours(arguments)?)];
            if let Some(peer) = peer {
                let mut command = peer_command(peer, arguments)?;
                command.args(&folder);
                commands.push(("theirs", command));
            }
            commands
        }
        Sides::Named { sides, .. } => {
            let command = |program: &Program, arguments: &[&str]| match program {
                Program::Ours => ours(arguments),
                Program::Peer(peer) => {
                    let mut command = peer_command(peer, arguments)?;
                    // Peers do not read datasets, which they would need in other formats.
                    let is_made = case.files.as_ref().is_some_and(|files| files.dataset.is_empty());
                    command.args(folder.iter().filter(|_| is_made));
                    Ok(command)
                }
            };
            let commands = sides.iter().map(|side| Ok((side.name, command(&side.program, side.arguments)?)));
            commands.collect::<Result<_>>()?
        }
    };
    let names = commands.iter().map(|(name, _)| *name).collect();
    let workers = commands.into_iter().map(|(name, command)| Worker::start(name, command));
    let mut workers = workers.collect::<Result<Vec<_>>>()?;
    Ok((names, worker::take_turns(&mut workers, repeat)?))
}

fn pair(bench: &Bench, case: &Case, turns: Vec<Turns>) -> Result<Measurement> {
    let mut medians = turns.into_iter().filter_map(|side| median(side.seconds));
    let ours = medians.next().with_context(|| format!("{}: there is no measurement", case.name))?;
    Ok(Measurement { bench: bench.name, case: case.name, unit: case.unit, ours, theirs: medians.next() })
}

fn our_program() -> Result<PathBuf> {
    let metadata = workspace::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
    let program = Path::new(target).join("release").join("calmix-bench");
    Ok(program.with_extension(std::env::consts::EXE_EXTENSION))
}

fn peer_command(peer: &Peer, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(venv::python(peer.packages)?);
    // -B: write no compiled files beside the scripts.
    command.arg("-B").arg(workspace::root().join(peer.script)).args(arguments);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_understood_or_refused_with_a_reason() {
        let expected = |json, repeat| Request { name: "plan".to_owned(), json, repeat };
        assert_eq!(request(&["plan"]).expect("plain"), expected(false, DEFAULT_REPEAT));
        assert_eq!(request(&["--repeat", "3", "plan", "--json"]).expect("all"), expected(true, 3));
        for wrong in [&["--repeat", "0", "plan"][..], &["plan", "--repeat"], &["plan", "x"], &["--fast"], &[]]
        {
            assert!(request(wrong).is_err(), "{wrong:?}");
        }
    }
}
