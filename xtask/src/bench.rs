//! `cargo xtask bench`: ours and theirs, side by side on the same machine in the same run.
//!
//! Both sides are processes that prepare a case and then repeat it on command ([`worker`] has the protocol),
//! so neither pays for the other's start-up. Repetitions alternate between the sides, and so does the side
//! that goes first, so a machine that slows down or speeds up does so for both. What is reported is the
//! median of each side.

mod catalogue;
mod files;
mod measurement;
mod worker;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::setup::venv;
use crate::workspace;
use catalogue::{BENCHES, Bench, Case};
use measurement::{Measurement, median};
use worker::Worker;

/// Enough for a median that one hiccup cannot move.
const DEFAULT_REPEAT: usize = 9;

/// What the user asked for.
#[derive(Debug, PartialEq)]
struct Request {
    name: String,
    json: bool,
    repeat: usize,
}

/// Measures every case of the named bench and prints a table, or one JSON object a line.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let request = request(arguments)?;
    let bench = BENCHES.iter().find(|bench| bench.name == request.name);
    let bench = bench.with_context(|| format!("there is no bench `{}`; {}", request.name, names()))?;
    let mut measurements = Vec::new();
    for case in bench.cases {
        if let Some(program) = missing_program(case) {
            eprintln!("bench: skipped, because {program} is not installed: {}", case.name);
            continue;
        }
        let measured = measure(bench, case, request.repeat)?;
        if request.json {
            println!("{}", measured.json());
        }
        measurements.push(measured);
    }
    if !request.json {
        println!("{}: {}; median of {}", bench.name, bench.what, request.repeat);
        println!("{}", measurement::table(&measurements));
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
            second => bail!("bench measures one thing at a time, but `{second}` is a second name"),
        }
    }
    let name = name.with_context(|| format!("bench needs a name; {}", names()))?;
    Ok(Request { name, json, repeat })
}

fn names() -> String {
    let lines: Vec<String> =
        BENCHES.iter().map(|bench| format!("\n  {:<8} {}", bench.name, bench.what)).collect();
    format!("these exist:{}", lines.concat())
}

/// A program that the case needs to be built and that is not here.
fn missing_program(case: &Case) -> Option<&'static str> {
    let is_missing = |program: &&str| Command::new(program).arg("--version").output().is_err();
    case.extra.as_ref()?.programs.iter().copied().find(is_missing)
}

/// Builds ours as the case wants it. Cargo keeps what it built for the other cases.
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

fn measure(bench: &Bench, case: &Case, repeat: usize) -> Result<Measurement> {
    build(case)?;
    let python = bench.peer.as_ref().map(|peer| venv::python(peer.packages)).transpose()?;
    let folder = match (&case.files, &python) {
        (Some(files), Some(python)) => Some(files::folder(files, python)?),
        _ => None,
    };
    let mut ours = Worker::start("ours", ours_command(bench, case, folder.as_deref())?)?;
    let theirs = match (&bench.peer, python) {
        (Some(peer), Some(python)) if case.compared => {
            let mut command = Command::new(python);
            // -B: no compiled files beside the scripts.
            command.arg("-B").arg(workspace::root().join(peer.script)).args(case.arguments);
            command.args(&folder);
            Some(Worker::start("theirs", command)?)
        }
        _ => None,
    };
    let (ours, theirs) = match theirs {
        Some(mut theirs) => {
            let (ours, theirs) = interleave(&mut ours, &mut theirs, repeat)?;
            (ours, Some(theirs))
        }
        None => (alone(&mut ours, repeat)?, None),
    };
    let seconds =
        |times: Vec<f64>| median(times).ok_or_else(|| anyhow!("{}: nothing was measured", case.name));
    Ok(Measurement {
        bench: bench.name,
        case: case.name,
        unit: case.unit,
        ours: seconds(ours)?,
        theirs: theirs.map(seconds).transpose()?,
    })
}

fn ours_command(bench: &Bench, case: &Case, folder: Option<&Path>) -> Result<Command> {
    let metadata = workspace::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
    let mut program = Path::new(target).join("release").join("calmix-bench");
    program.set_extension(std::env::consts::EXE_EXTENSION);
    let mut command = Command::new(program);
    command.arg(bench.name).args(case.arguments).args(folder);
    Ok(command)
}

/// The seconds of each repetition of both sides, after one that warms up and is not counted.
fn interleave(ours: &mut Worker, theirs: &mut Worker, repeat: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    ours.repetition()?;
    theirs.repetition()?;
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for round in 0..repeat {
        if round % 2 == 0 {
            our_times.push(ours.repetition()?);
            their_times.push(theirs.repetition()?);
        } else {
            their_times.push(theirs.repetition()?);
            our_times.push(ours.repetition()?);
        }
    }
    Ok((our_times, their_times))
}

fn alone(ours: &mut Worker, repeat: usize) -> Result<Vec<f64>> {
    ours.repetition()?;
    (0..repeat).map(|_| ours.repetition()).collect()
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
