//! `cargo xtask images`: draws the images of the documentation from real runs, by `docs/images/make.py`.
//!
//! It trains on Fashion-MNIST in `$CALMIX_DATASETS`, which takes some minutes, and keeps the run in the target folder.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::check::python;
use crate::setup::{ONNX, onnxruntime, venv};
use crate::{weights, workspace};

/// The backbone of the run.
const BACKBONE: &str = "tf_efficientnet_lite0";

/// Draws the named images, or all.
pub(crate) fn run(names: &[&str]) -> Result<()> {
    let datasets = env::var_os("CALMIX_DATASETS").filter(|folder| !folder.is_empty());
    let datasets = datasets.context("set CALMIX_DATASETS to the folder that contains fashion-mnist")?;
    let backbone = weights::file(BACKBONE)?;
    let library = backbone.parent().and_then(Path::parent).context("the weights are in no folder")?;
    let target = python::target_folder()?;
    let mut script = Command::new(venv::python(ONNX)?);
    script.current_dir(workspace::root()).args(["-B", "docs/images/make.py"]);
    script.arg(target.join("images")).args(names);
    script.env("CALMIX", program(&target)?).env("CALMIX_DATASETS", datasets);
    script.env("CALMIX_WEIGHTS", library).env("ORT_DYLIB_PATH", onnxruntime::library()?);
    let status = script.status().context("cannot start python")?;
    ensure!(status.success(), "docs/images/make.py ended with {status}");
    Ok(())
}

/// `$CALMIX`, or the program of this tree, built when needed.
fn program(target: &Path) -> Result<PathBuf> {
    if let Some(program) = env::var_os("CALMIX").filter(|program| !program.is_empty()) {
        return Ok(program.into());
    }
    let build = ["build", "--release", "--quiet", "--locked", "--package", "calmix"];
    let status = workspace::cargo().args(build).status().context("cannot start cargo build")?;
    ensure!(status.success(), "calmix does not build: `cargo build --release -p calmix`");
    Ok(target.join("release/calmix").with_extension(env::consts::EXE_EXTENSION))
}
