//! The steps of `cargo xtask check`, cheapest first. To add one, add an entry.

use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::tier::Tier;
use super::{advisories, corpus, layout, miri, publish, python, snippets};
use crate::setup::{CARGO_DENY, CARGO_NEXTEST, TYPOS, libtorch, venv};
use crate::{site, wasm, workspace};

/// A check that must pass.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The first tier that runs it.
    pub(crate) tier: Tier,
    /// Returns the action in a tier; fails if a tool is missing.
    pub(crate) action: fn(Tier) -> Result<Action>,
}

/// The action of a step.
pub(crate) enum Action {
    /// A command that must succeed.
    Command(Command),
    /// A function of xtask, with its file.
    Function { file: &'static str, run: fn() -> Result<()> },
    /// Nothing, because something is missing that `setup` does not install. Counts as a skipped test.
    Skip { reason: &'static str },
}

pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "the code is formatted (`cargo fmt --all`)",
        tier: Tier::Quick,
        action: |_| Ok(cargo(&["fmt", "--all", "--check"])),
    },
    Step {
        name: "spelling",
        what: "the spelling is British; exceptions go into _typos.toml",
        tier: Tier::Quick,
        action: |_| Ok(Action::Command(TYPOS.command()?)),
    },
    Step {
        name: "layout",
        what: "length of files, files of a folder, cycles of imports, size of golden data, dependencies of calmix-core, words to avoid",
        tier: Tier::Quick,
        action: |_| Ok(Action::Function { file: "xtask/src/check/layout.rs", run: layout::check }),
    },
    Step {
        name: "deny",
        what: "dependencies follow deny.toml: allowed crates, versions, licences, sources, security advisories",
        tier: Tier::Quick,
        action: |_| {
            let mut command = CARGO_DENY.command()?;
            command.args(["--locked", "--offline"]);
            if let Some(folder) = advisories::folder()? {
                command.arg("--config").arg(advisories::config(&folder)?).args(["check", "advisories"]);
            } else {
                println!(
                    "deny: there is no database of advisories (CALMIX_ADVISORIES, or `cargo deny fetch db`)"
                );
                command.arg("check");
            }
            command.args(["bans", "licenses", "sources"]);
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "clippy",
        what: "no lint is raised, in any crate and with every optional feature",
        tier: Tier::Quick,
        action: |_| {
            libtorch::require()?;
            Ok(Action::Command(linting(
                &["clippy", "--workspace", "--all-targets"],
                &["--", "-D", "warnings"],
            )))
        },
    },
    Step {
        name: "docs",
        what: "the documentation builds without a warning",
        tier: Tier::Usual,
        action: |_| {
            libtorch::require()?;
            let flags = ["doc", "--workspace", "--no-deps"];
            // Use clippy's features, so that its compiled crates are reused.
            let mut command = linting(&flags, &["--document-private-items"]);
            command.env("RUSTDOCFLAGS", "-Dwarnings");
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "site",
        what: "the documentation builds as a site, its links lead somewhere, and it fetches nothing from elsewhere",
        tier: Tier::Usual,
        action: |_| Ok(Action::Function { file: "xtask/src/site.rs", run: site::check }),
    },
    Step {
        name: "tests",
        what: "every test passes",
        tier: Tier::Quick,
        action: |tier| {
            if tier == Tier::Quick {
                let packages = workspace::WITHOUT_LIBTORCH.iter().map(|name| format!("--package={name}"));
                let packages = packages.chain(["--no-default-features".to_owned()]);
                return Ok(Action::Command(nextest("default", packages)?));
            }
            libtorch::require()?;
            let mut command = nextest(if tier == Tier::Nightly { "nightly" } else { "default" }, TESTED)?;
            if tier == Tier::Nightly {
                command.env("CALMIX_EXHAUSTIVE", "1");
            }
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "doctests",
        what: "every example in the documentation runs",
        tier: Tier::Usual,
        action: |_| {
            libtorch::require()?;
            Ok(cargo(&[&["test", "--doc"], TESTED, &["--locked"]].concat()))
        },
    },
    Step {
        name: "python",
        what: "the Python package passes its tests, and scikit-learn accepts its estimator",
        tier: Tier::Usual,
        action: |tier| {
            libtorch::require()?;
            let run = if tier == Tier::Nightly { python::check_nightly } else { python::check };
            Ok(Action::Function { file: "xtask/src/check/python.rs", run })
        },
    },
    Step {
        name: "snippets",
        what: "every command and piece of code of README and docs runs as it stands there, or is marked with the reason",
        tier: Tier::Usual,
        action: |tier| {
            libtorch::require()?;
            let run = if tier == Tier::Nightly { snippets::check_nightly } else { snippets::check };
            Ok(Action::Function { file: "xtask/src/check/snippets.rs", run })
        },
    },
    Step {
        name: "results",
        what: "every number of the study follows from its list of runs",
        tier: Tier::Usual,
        action: |_| {
            let mut command = Command::new(venv::python(python::TESTS)?);
            command.current_dir(workspace::root()).args(["-B", "results/tables.py", "--check"]);
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "wasm",
        what: "the program in the page of `calmix review --live` is what the sources make",
        tier: Tier::Usual,
        action: |_| {
            if !wasm::is_installed() {
                return Ok(Action::Skip {
                    reason: "no target wasm32-wasip1: `rustup target add wasm32-wasip1`",
                });
            }
            Ok(Action::Function { file: "xtask/src/wasm.rs", run: wasm::check })
        },
    },
    Step {
        name: "peers",
        what: "the Python package has the measures of torchmetrics, netcal and scikit-learn, and the steps of the engine",
        tier: Tier::Nightly,
        action: |_| {
            libtorch::require()?;
            Ok(Action::Function { file: "xtask/src/check/python.rs", run: python::check_peers })
        },
    },
    Step {
        name: "raster",
        what: "plots are written as PNG files, which needs some thirty more crates",
        tier: Tier::Nightly,
        action: |_| {
            let packages = ["--package", "calmix-report", "--features", "raster"];
            Ok(Action::Command(nextest("nightly", packages)?))
        },
    },
    Step {
        name: "corpus",
        what: "the fuzz targets pass on what earlier campaigns found",
        tier: Tier::Nightly,
        action: |_| Ok(Action::Function { file: "xtask/src/check/corpus.rs", run: corpus::replay }),
    },
    Step {
        name: "miri",
        what: "unit tests of calmix-core and calmix-head have no undefined behaviour, by Miri",
        tier: Tier::Nightly,
        action: |_| Ok(miri::action()),
    },
    Step {
        name: "shuttle",
        what: "the loader's threads end, in thousands of orders, with the same batches",
        tier: Tier::Nightly,
        action: |_| {
            let mut command = workspace::cargo();
            command.args(["test", "--locked", "--package=calmix-data", "--lib", "--", "interleavings"]);
            // Use another target folder, because the flag would cause everything to be compiled again.
            command.env("RUSTFLAGS", "--cfg=shuttle");
            command.env("CARGO_TARGET_DIR", workspace::root().join("target/shuttle"));
            Ok(Action::Command(command))
        },
    },
    Step {
        name: "publish",
        what: "the crates that do not need libtorch can be packaged, and compile from their packages",
        tier: Tier::Nightly,
        action: |_| Ok(Action::Function { file: "xtask/src/check/publish.rs", run: publish::check }),
    },
];

/// The packages and features of the tests: the defaults and object storage, without the allocator, which takes minutes to
/// compile, and without the fuzz targets, which have no `main` to link.
pub(super) const TESTED: &[&str] = &[
    "--workspace",
    "--exclude",
    "calmix-fuzz",
    "--no-default-features",
    "--features",
    "calmix/https,calmix-torch/https,calmix-torch/cloud",
];

/// The features that are off by default or by `--no-default-features`, except for the allocator. NCCL's headers come with
/// PyTorch's package, on Linux only.
const OPTIONAL_FEATURES: &str = if cfg!(target_os = "linux") {
    "calmix-bench/engine,calmix-data/turbo,calmix/man,calmix-torch/cloud,calmix-torch/https,calmix-torch/raster,calmix-torch/nccl"
} else {
    "calmix-bench/engine,calmix-data/turbo,calmix/man,calmix-torch/cloud,calmix-torch/https,calmix-torch/raster"
};

/// Returns commands that compile, for the steps `clippy` and `tests`, the crates without libtorch; the others fail silently.
pub(super) fn warming() -> [Command; 2] {
    let lints = linting(&["clippy", "--workspace", "--all-targets", "--keep-going", "--quiet"], &[]);
    let mut tests = workspace::cargo();
    tests.args(["build", "--tests", "--keep-going", "--quiet", "--locked"]).args(TESTED);
    [lints, tests].map(|mut command| {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    })
}

/// Returns a cargo command that compiles without linking, with every optional feature except the allocator.
fn linting(before: &[&str], after: &[&str]) -> Command {
    let mut command = workspace::cargo();
    // Nothing is linked, so libjpeg-turbo need not be compiled with cmake.
    command.env("TURBOJPEG_SOURCE", "explicit").env("TURBOJPEG_DYNAMIC", "1");
    command.env("TURBOJPEG_LIB_DIR", workspace::root());
    command.args(before).args(["--locked", "--no-default-features", "--features", OPTIONAL_FEATURES]);
    command.args(after);
    command
}

/// Returns a run of tests with a profile of `.config/nextest.toml`.
fn nextest(profile: &str, packages: impl IntoIterator<Item: AsRef<OsStr>>) -> Result<Command> {
    let mut command = CARGO_NEXTEST.command()?;
    command.args(["nextest", "run", "--profile", profile, "--locked"]).args(packages);
    // Tests run in parallel, and libtorch's threads spin while they wait for each other.
    command.env("OMP_NUM_THREADS", "1");
    Ok(command)
}

fn cargo(arguments: &[&str]) -> Action {
    let mut command = workspace::cargo();
    command.args(arguments);
    Action::Command(command)
}

/// Formats the command so that it can be pasted into a shell.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = match self {
            Self::Function { file, .. } => return f.write_str(file),
            Self::Skip { reason } => return write!(f, "skipped: {reason}"),
            Self::Command(command) => command,
        };
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                write!(f, "{}={} ", name.display(), value.display())?;
            }
        }
        let program = std::path::Path::new(command.get_program());
        // Shorten the path of cargo, which is long.
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
        let skipped = Action::Skip { reason: "no Miri" };
        assert_eq!(skipped.to_string(), "skipped: no Miri");
    }
}
