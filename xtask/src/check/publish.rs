//! The check that the crates without libtorch can be published: each is packaged, and compiled from its package.
//!
//! It finds errors that only occur outside of the workspace: a file that is included from another folder, a feature that another
//! crate enables, metadata that crates.io requires. Nothing is uploaded, and no account is needed.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// Packages and compiles the crates in one command, because they depend on each other and are not on crates.io yet.
pub(crate) fn check() -> Result<()> {
    let target = workspace::root().join("target/publish");
    remove_earlier_packages(&target)?;
    let mut command = workspace::cargo();
    command.args(["publish", "--dry-run", "--locked"]).env("CARGO_TARGET_DIR", &target);
    for name in workspace::WITHOUT_LIBTORCH {
        command.args(["--package", name]);
    }
    let status = command.status().context("cannot start cargo publish")?;
    ensure!(status.success(), "cargo publish --dry-run ended with {status}");
    Ok(())
}

/// Deletes the packages of an earlier check. Cargo assumes that a package of the same version is unchanged, and would compile the
/// sources of that check again.
fn remove_earlier_packages(target: &Path) -> Result<()> {
    if target.exists() {
        fs::remove_dir_all(target).with_context(|| format!("cannot remove {}", target.display()))?;
    }
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(env::home_dir()?.join(".cargo"))) else { return Ok(()) };
    for kind in ["src", "cache"] {
        // Cargo names a registry `HOST-HASH`. That of `--dry-run` is a folder, so its host is empty.
        for registry in entries(&home.join("registry").join(kind), "-") {
            for package in entries(&registry, "calmix") {
                let removed =
                    if package.is_dir() { fs::remove_dir_all(&package) } else { fs::remove_file(&package) };
                removed.with_context(|| format!("cannot remove {}", package.display()))?;
            }
        }
    }
    Ok(())
}

/// Returns the entries of a folder whose names have this prefix.
fn entries(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().starts_with(beginning))
        .map(|entry| entry.path())
        .collect()
}
