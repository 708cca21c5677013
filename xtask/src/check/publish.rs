//! Checks that the crates that do not need libtorch can be published: each is packaged, and compiled from its package.
//!
//! This finds errors that only appear outside the workspace: a file that is included from another folder, a feature that another
//! crate turns on, metadata that crates.io requires. Nothing is uploaded, and no account is needed.

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// The packages that do not link libtorch.
const CRATES: &[&str] = &[
    "calmix-core",
    "calmix-io",
    "calmix-cloud",
    "calmix-metrics",
    "calmix-head",
    "calmix-data",
    "calmix-recipe",
    "calmix-onnx",
    "calmix-run",
    "calmix-vectors",
    "calmix-report",
    "calmix",
];

/// Packages and compiles the crates in one command: they depend on each other, and crates.io does not have them yet.
pub(crate) fn check() -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["publish", "--dry-run", "--locked"]);
    for name in CRATES {
        command.args(["--package", name]);
    }
    let status = command.status().context("cannot start cargo publish")?;
    ensure!(status.success(), "cargo publish --dry-run ended with {status}");
    Ok(())
}
