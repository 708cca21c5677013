//! `cargo xtask site`: builds the documentation as a site, by `site/build.py` with mkdocs-material.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::check::python;
use crate::setup::venv;
use crate::workspace;

/// The environment that builds the site. mkdocstrings reads the Python package without importing it.
pub(crate) const PACKAGES: &[&str] = &[
    "mkdocs==1.6.1",
    "mkdocs-material==9.8.1",
    "mkdocstrings==1.0.8",
    "mkdocstrings-python==2.0.11",
    "griffelib==2.4.1",
    "pymdown-extensions==13.1",
    "markdown-it-py==4.3.0",
    "ruff==0.17.5",
];

/// The crates whose documentation is on the site: those that others depend on. `site/rust.md` links them.
const CRATES: &[&str] = &["--package=calmix", "--package=calmix-core", "--package=calmix-metrics"];

/// Builds the site with the documentation of the crates, and prints where it is.
pub(crate) fn run() -> Result<()> {
    let arguments =
        ["doc", "--locked", "--no-deps", "--lib", "--no-default-features", "--features=calmix/https"];
    let status =
        workspace::cargo().args(arguments).args(CRATES).status().context("cannot start cargo doc")?;
    ensure!(status.success(), "the documentation of the crates does not build");
    let site = build(Some(python::target_folder()?.join("doc")))?;
    println!("site: {}\nTo read it with its search: python3 -m http.server --directory {0}", site.display());
    Ok(())
}

/// Builds the site without the documentation of the crates, which the step `docs` builds, and checks it; in a browser if there is one.
pub(crate) fn check() -> Result<()> {
    let site = build(None)?;
    if env::var_os("CALMIX_BROWSER_MODULES").is_none_or(|folder| folder.is_empty()) {
        println!("site: not opened in a browser, because CALMIX_BROWSER_MODULES is not set");
        return Ok(());
    }
    let mut node = Command::new("node");
    node.arg(workspace::root().join("xtask/src/site/browser.mjs")).arg(&site);
    let status = node.status().context("cannot start node")?;
    ensure!(status.success(), "a browser found problems in {}", site.display());
    Ok(())
}

/// Builds the pages, with these of `cargo doc`, and returns their folder.
fn build(crates: Option<PathBuf>) -> Result<PathBuf> {
    let site = python::target_folder()?.join("site");
    let mut script = Command::new(venv::python(PACKAGES)?);
    script.arg("-B").arg(workspace::root().join("xtask/src/site/build.py")).arg(&site).args(crates);
    let status = script.status().context("cannot start python")?;
    ensure!(status.success(), "the site has problems: see above");
    Ok(site)
}
