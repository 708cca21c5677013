//! The workspace according to cargo.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The packages that do not link libtorch. Their tests take seconds, and they can be published.
pub(crate) const WITHOUT_LIBTORCH: &[&str] = &[
    "calmix-core",
    "calmix-io",
    "calmix-cloud",
    "calmix-metrics",
    "calmix-head",
    "calmix-live",
    "calmix-formats",
    "calmix-data",
    "calmix-recipe",
    "calmix-onnx",
    "calmix-ort",
    "calmix-run",
    "calmix-lifecycle",
    "calmix-heads",
    "calmix-report",
    "calmix",
];

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    // Read the variable at run time, because clones that share a target folder also share this binary.
    let xtask = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let xtask = PathBuf::from(xtask);
    xtask.parent().map_or(xtask.clone(), PathBuf::from)
}

/// Creates an empty folder, removing what was there.
pub(crate) fn empty_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Returns the cargo that runs xtask.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Returns the output of `cargo metadata`, with the resolved graph.
pub(crate) fn metadata() -> Result<Value> {
    let output = cargo()
        .args(["metadata", "--format-version=1", "--locked", "--all-features"])
        .output()
        .context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata printed something that is not JSON")
}
