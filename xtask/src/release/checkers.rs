//! The programs of the Python Packaging Authority that look into wheels.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::name;
use crate::setup::venv;

/// `twine` reads metadata as PyPI does, `abi3audit` finds symbols outside of Python's stable interface, and `auditwheel` the glibc
/// that files need.
const CHECKERS: &[&str] = &["abi3audit==0.0.26", "auditwheel==6.8.2", "twine==7.0.0"];

/// Runs all checkers on these wheels, prints their words, and returns a sentence for each complaint.
pub(super) fn problems(wheels: &[PathBuf]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    if wheels.is_empty() {
        return Ok(problems);
    }
    let (passed, _) = output(checker("twine")?.args(["check", "--strict"]).args(wheels))?;
    if !passed {
        problems.push("twine refuses the metadata of a wheel".to_owned());
    }
    for wheel in wheels.iter().filter(|wheel| name(wheel).contains("-abi3-")) {
        let (passed, _) = output(checker("abi3audit")?.args(["--strict", "--summary"]).arg(wheel))?;
        if !passed {
            problems
                .push(format!("abi3audit finds symbols outside of the stable interface in {}", name(wheel)));
        }
    }
    for wheel in wheels {
        if let Some(glibc) = glibc(&name(wheel), "manylinux_2_") {
            problems.extend(glibc_problem(wheel, glibc)?);
        }
    }
    Ok(problems)
}

/// Compares the glibc that the files of a wheel need with that of its tag.
fn glibc_problem(wheel: &Path, tagged: u32) -> Result<Option<String>> {
    let (_, shown) = output(checker("auditwheel")?.arg("show").arg(wheel))?;
    // That libraries come from other wheels makes the whole `linux_x86_64`, as for PyTorch; versions of symbols decide.
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let needed = glibc(&words, "constrains the platform tag to \"manylinux_2_");
    Ok(match needed {
        Some(needed) if needed <= tagged => None,
        Some(needed) => Some(format!("{} needs glibc 2.{needed}", name(wheel))),
        None => Some(format!("auditwheel does not say which glibc {} needs", name(wheel))),
    })
}

/// Returns the number that follows these words.
fn glibc(text: &str, words: &str) -> Option<u32> {
    let (_, rest) = text.split_once(words)?;
    rest.split('_').next()?.parse().ok()
}

fn checker(name: &str) -> Result<Command> {
    let python = venv::python(CHECKERS)?;
    let programs = python.parent().context("the Python interpreter is not in a folder")?;
    Ok(Command::new(programs.join(name)))
}

/// Runs a checker, prints what it prints, and returns whether it passed, with its text.
fn output(command: &mut Command) -> Result<(bool, String)> {
    let program = command.get_program().to_string_lossy().into_owned();
    // Colours and wrapped lines are for terminals.
    let output = command.env("NO_COLOR", "1").env("COLUMNS", "200").output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("{}", text.trim());
    Ok((output.status.success(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_is_read_from_names_and_sentences() {
        assert_eq!(glibc("calmix-1.2.3-cp310-abi3-manylinux_2_28_aarch64.whl", "manylinux_2_"), Some(28));
        assert_eq!(glibc("calmix-1.2.3-cp310-abi3-win_amd64.whl", "manylinux_2_"), None);
        let shown = "This constrains the platform tag to \"manylinux_2_27_x86_64\". In order";
        assert_eq!(glibc(shown, "constrains the platform tag to \"manylinux_2_"), Some(27));
    }
}
