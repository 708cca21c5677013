//! The tiers of checks, and the tests that could not run on this machine.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A tier of the checks. Each runs the steps of the previous one, and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// Before a commit, in some minutes. Tests that link libtorch are left out.
    Quick,
    /// For every push: all pairs of options are tested, but not all combinations.
    Usual,
    /// Every night: all combinations, and long series of kills and stops.
    Nightly,
}

impl Tier {
    /// Splits the arguments of `check` into the tier and the names of steps.
    pub(crate) fn parse<'a>(arguments: &'a [&'a str]) -> (Self, &'a [&'a str]) {
        match arguments {
            ["quick", steps @ ..] => (Self::Quick, steps),
            ["--nightly", steps @ ..] => (Self::Nightly, steps),
            steps => (Self::Usual, steps),
        }
    }
}

/// The list of tests that a `check` skips.
pub(crate) struct SkippedTests {
    file: PathBuf,
}

impl SkippedTests {
    pub(crate) fn new() -> Result<Self> {
        // The file is in the target folder, wherever that is.
        let file = env::current_exe()?.with_file_name("skipped-tests.txt");
        fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { file })
    }

    /// Passes the path of the list to the tests that a command runs.
    pub(crate) fn listen(&self, command: &mut Command) {
        command.env("CALMIX_SKIPPED", &self.file);
    }

    /// Adds a test, or a whole step.
    pub(crate) fn add(&self, test: &str, reason: &str) -> Result<()> {
        let written = File::options().append(true).open(&self.file);
        let written = written.and_then(|mut file| writeln!(file, "{test}: {reason}"));
        written.with_context(|| format!("cannot write {}", self.file.display()))
    }

    /// Prints how many tests were skipped, and why.
    ///
    /// # Errors
    /// If any were skipped although all must run: in the nightly tier, or with `CALMIX_REQUIRE_ALL=1`.
    pub(crate) fn summarise(&self, tier: Tier) -> Result<()> {
        let written =
            fs::read_to_string(&self.file).with_context(|| format!("cannot read {}", self.file.display()))?;
        let Some(summary) = summary(&written) else { return Ok(()) };
        if is_required(tier, env::var("CALMIX_REQUIRE_ALL").ok().as_deref()) {
            bail!(
                "{summary}\ncheck: every test must run in this tier; set CALMIX_REQUIRE_ALL=0 to allow skipped tests"
            );
        }
        println!("{summary}");
        Ok(())
    }
}

/// Summarises the list. A test counts once, even if it lacks several things.
fn summary(written: &str) -> Option<String> {
    let lines: BTreeSet<&str> = written.lines().collect();
    let tests: BTreeSet<&str> = lines.iter().filter_map(|line| line.split(": ").next()).collect();
    let noun = if tests.len() == 1 { "test" } else { "tests" };
    let lines: Vec<&str> = lines.into_iter().collect();
    (!tests.is_empty()).then(|| format!("check: {} {noun} skipped:\n  {}", tests.len(), lines.join("\n  ")))
}

fn is_required(tier: Tier, variable: Option<&str>) -> bool {
    variable.map_or(tier == Tier::Nightly, |value| value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tier_comes_before_the_steps() {
        assert_eq!(Tier::parse(&[]), (Tier::Usual, &[][..]));
        assert_eq!(Tier::parse(&["fmt"]), (Tier::Usual, &["fmt"][..]));
        assert_eq!(Tier::parse(&["quick"]), (Tier::Quick, &[][..]));
        assert_eq!(Tier::parse(&["--nightly", "tests"]), (Tier::Nightly, &["tests"][..]));
    }

    #[test]
    fn skipped_tests_are_counted_once() {
        assert_eq!(summary(""), None);
        let written = "calmix b: no MLflow\ncalmix a: no FUSE\ncalmix a: no FUSE\ncalmix a: no root\n";
        let expected =
            "check: 2 tests skipped:\n  calmix a: no FUSE\n  calmix a: no root\n  calmix b: no MLflow";
        assert_eq!(summary(written).as_deref(), Some(expected));
        assert_eq!(summary("x: y\n").as_deref(), Some("check: 1 test skipped:\n  x: y"));
    }

    #[test]
    fn nightly_requires_every_test() {
        assert!(!is_required(Tier::Usual, None) && is_required(Tier::Nightly, None));
        assert!(is_required(Tier::Usual, Some("1")) && !is_required(Tier::Nightly, Some("0")));
    }
}
