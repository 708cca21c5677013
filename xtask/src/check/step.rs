//! The steps of `cargo xtask check`, cheapest first. To add one, add an entry.

use std::fmt;
use std::process::Command;

use anyhow::Result;

use super::{advisories, layout};
use crate::setup::{CARGO_DENY, CARGO_NEXTEST, TYPOS, libtorch};
use crate::workspace;

/// One thing that must hold.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// How to find out; an error when a tool is missing.
    pub(crate) action: fn() -> Result<Action>,
}

/// How a step finds out.
pub(crate) enum Action {
    /// A command that succeeds.
    Command(Command),
    /// A function of our own.
    Own { called: &'static str, run: fn() -> Result<()> },
}

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "the code is formatted; `cargo fmt --all` does it",
        action: || Ok(cargo(&["fmt", "--all", "--check"])),
    },
    Step {
        name: "spelling",
        what: "British spelling; exceptions go into _typos.toml",
        action: || Ok(Action::Command(TYPOS.command()?)),
    },
    Step {
        name: "layout",
        what: "length of files, size of golden data, unique type names, dependencies of calmix-core",
        action: || Ok(Action::Own { called: "xtask/src/check/layout.rs", run: layout::check }),
    },
    Step {
        name: "deny",
        what: "which crate may use which; versions, licences, sources and known flaws of dependencies: deny.toml",
        action: || {
            let mut command = CARGO_DENY.command()?;
            command.args(["--locked", "--offline"]);
            if let Some(folder) = advisories::folder()? {
                command.arg("--config").arg(advisories::config(&folder)?).args(["check", "advisories"]);
            } else {
                println!(
                    "deny: no database of advisories here (CALMIX_ADVISORIES, or `cargo deny fetch db`)"
                );
                command.arg("check");
            }
            command.args(["bans", "licenses", "sources"]);
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "clippy",
        what: "no lint is raised",
        action: || {
            libtorch::require()?;
            let workspace = ["clippy", "--workspace", "--all-targets", "--features", "calmix-bench/engine"];
            Ok(cargo(&[&workspace[..], &["--locked", "--", "-D", "warnings"]].concat()))
        },
    },
    Step {
        name: "features",
        what: "what is off by default compiles: the features `turbo` and `nccl`",
        action: || {
            libtorch::require()?;
            let mut command = workspace::cargo();
            // Checking links nothing, so libjpeg-turbo, which its crate would compile with cmake, need not be here.
            command.env("TURBOJPEG_SOURCE", "explicit").env("TURBOJPEG_DYNAMIC", "1");
            command.env("TURBOJPEG_LIB_DIR", workspace::root().join("target"));
            command.args(["check", "-p", "calmix-data", "-p", "calmix", "--locked", "--features", FEATURES]);
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "fuzz",
        what: "the fuzz targets compile; fuzz/README.md says how to run them",
        action: || {
            libtorch::require()?;
            // In the folder of the workspace, so that what both need is built once; without the C++ of libFuzzer.
            let mut command = workspace::cargo();
            command.args(["check", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target", "--bins"]);
            command.args(["--no-default-features", "--features", "recipe", "--locked"]);
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "docs",
        what: "the documentation builds without a warning",
        action: || {
            libtorch::require()?;
            let mut command = workspace::cargo();
            command.env("RUSTDOCFLAGS", "-Dwarnings");
            command.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"]);
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "tests",
        what: "every test passes",
        action: || {
            libtorch::require()?;
            let mut command = CARGO_NEXTEST.command()?;
            command.args(["nextest", "run", "--workspace", "--locked"]);
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "doctests",
        what: "every example in the documentation runs",
        action: || {
            libtorch::require()?;
            Ok(cargo(&["test", "--doc", "--workspace", "--locked"]))
        },
    },
];

/// The headers of NCCL come with PyTorch's package, for Linux alone.
const FEATURES: &str =
    if cfg!(target_os = "linux") { "calmix-data/turbo,calmix/nccl" } else { "calmix-data/turbo" };

fn cargo(arguments: &[&str]) -> Action {
    let mut command = workspace::cargo();
    command.args(arguments);
    Action::Command(command)
}

/// As it can be pasted into a shell.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = match self {
            Self::Own { called, .. } => return f.write_str(called),
            Self::Command(command) => command,
        };
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                write!(f, "{}={} ", name.display(), value.display())?;
            }
        }
        let program = std::path::Path::new(command.get_program());
        // The cargo that runs us has a long path that says nothing.
        match program.file_stem() {
            Some(stem) if stem == "cargo" => f.write_str("cargo")?,
            _ => write!(f, "{}", program.display())?,
        }
        for argument in command.get_args() {
            write!(f, " {}", argument.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_is_typed() {
        let mut command = Command::new("/some/toolchain/bin/cargo");
        command.env("RUSTDOCFLAGS", "-Dwarnings").args(["doc", "--no-deps"]);
        assert_eq!(Action::Command(command).to_string(), "RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps");
    }
}
