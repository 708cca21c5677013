//! The Python environment with the tools that build and test wheels.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::setup::venv;

/// uv and pipx install the wheels in the test, auditwheel names the glibc that they need.
const TOOLS: &[&str] =
    &["auditwheel==6.8.2", "maturin==1.16.0", "pipx==1.18.4", "uv==0.13.7", "wheel==0.48.0"];

/// A program of the environment, which is created when needed.
pub(super) fn program(name: &str) -> Result<PathBuf> {
    let python = venv::python(TOOLS)?;
    let programs = python.parent().context("the Python interpreter is not in a folder")?;
    Ok(programs.join(name))
}
