//! A tool that `check` needs: finding and installing it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::attempts::attempt;
use super::venv;
use crate::cache::Installed;
use crate::workspace;

/// The source of a tool.
pub(crate) enum Registry {
    /// A wheel with the compiled program.
    PyPi,
    /// Source code, which is compiled here.
    CratesIo,
}

/// A command-line tool, with the version to install if it is missing.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) registry: Registry,
}

impl Tool {
    /// Finds the installation in the cache, or one on `PATH` that is not older.
    pub(crate) fn find(&self) -> Result<Option<PathBuf>> {
        let installed = self.installed()?;
        if installed.is_complete() {
            return Ok(Some(self.program(&installed.folder)));
        }
        let Ok(output) = Command::new(self.name).arg("--version").output() else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let recent = output.status.success() && version(&text) >= version(self.version);
        Ok(recent.then(|| self.name.into()))
    }

    /// Returns a command that runs the tool in the root of the workspace.
    pub(crate) fn command(&self) -> Result<Command> {
        let Some(program) = self.find()? else {
            bail!("{} {} or newer is not installed; run `cargo xtask setup`", self.name, self.version);
        };
        let mut command = Command::new(program);
        command.current_dir(workspace::root());
        Ok(command)
    }

    /// Installs the tool into the cache.
    pub(super) fn install(&self) -> Result<PathBuf> {
        let installed = self.installed()?;
        installed.ensure(|folder| match self.registry {
            Registry::PyPi => venv::create(folder, &[&format!("{}=={}", self.name, self.version)]),
            Registry::CratesIo => {
                attempt(&format!("cargo install {}", self.name), || self.cargo_install(folder))
            }
        })?;
        let program = self.program(&installed.folder);
        ensure!(program.is_file(), "{} was installed without {}", self.name, program.display());
        Ok(program)
    }

    fn cargo_install(&self, folder: &Path) -> Result<()> {
        let status = workspace::cargo()
            .args(["install", self.name, "--locked", "--quiet", "--version", self.version, "--root"])
            .arg(folder)
            // The tool is built once and runs for seconds: a quick build matters more than fast code.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256")
            // Build in a temporary folder, which cargo removes, not in the target folder of the workspace.
            .env_remove("CARGO_TARGET_DIR")
            .status()
            .context("cannot start cargo install")?;
        ensure!(status.success(), "cargo install {} ended with {status}", self.name);
        Ok(())
    }

    fn installed(&self) -> Result<Installed> {
        Installed::named(&format!("tools/{}-{}", self.name, self.version))
    }

    fn program(&self, folder: &Path) -> PathBuf {
        let programs = match self.registry {
            Registry::PyPi => venv::programs(folder),
            Registry::CratesIo => folder.join("bin"),
        };
        programs.join(self.name).with_extension(std::env::consts::EXE_EXTENSION)
    }
}

/// Returns the first three-part number in the output of `--version`.
fn version(output: &str) -> Option<[u64; 3]> {
    output.split_whitespace().find_map(|word| {
        let mut parts = word.split('.').map(|part| part.parse().ok());
        let number = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("typos-cli 1.51.1"), Some([1, 51, 1]));
        assert_eq!(
            version("cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143"),
            Some([0, 9, 143])
        );
        assert!(version("cargo-deny 0.14.2") < version("0.20.2"));
        assert!(version("tool 0.9.100") > version("0.9.99"));
        assert!(version("command not found") < version("0.0.1"));
    }
}
