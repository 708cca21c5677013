//! Tests the Python package: builds its native part and the command, puts them beside its sources in the target folder, and runs
//! pytest in an environment of the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::step::TESTED;
use crate::setup::venv;
use crate::workspace;

/// The packages that the tests use: the peers of the estimator and of the measures.
pub(crate) const TESTS: &[&str] = &[venv::NUMPY, "scikit-learn==1.9.1", "pandas==3.1.1", "pytest==9.2.0"];

/// Builds the package and runs its tests and the examples in its documentation.
pub(crate) fn check() -> Result<()> {
    let build = ["build", "--locked"];
    // With the features of the tests, so that it finds what they have compiled.
    let status = workspace::cargo().args(build).args(TESTED).status().context("cannot start cargo")?;
    ensure!(status.success(), "the native part of the package does not build");
    let target = target_folder()?;
    let built = target.join("debug");
    let package = package(&target.join("python"), &built)?;
    let python = venv::python(TESTS)?;
    let source = workspace::root().join("bindings/python");
    let mut command = Command::new(python);
    command.current_dir(&source).env("PYTHONPATH", paths(&package)?).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("CALMIX_PROGRAM", built.join("calmix"));
    command.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--doctest-modules"]);
    command.arg("tests").arg(package.join("calmix"));
    let status = command.status().context("cannot start pytest")?;
    ensure!(status.success(), "tests of the Python package fail");
    Ok(())
}

/// A folder for `PYTHONPATH` with the sources of the package and its native part.
fn package(folder: &Path, built: &Path) -> Result<PathBuf> {
    let package = folder.join("calmix");
    let shown = package.display().to_string();
    if package.exists() {
        fs::remove_dir_all(&package).with_context(|| format!("cannot clear {shown}"))?;
    }
    fs::create_dir_all(&package).with_context(|| format!("cannot create {shown}"))?;
    let sources = workspace::root().join("bindings/python/python/calmix");
    let entries = fs::read_dir(&sources).with_context(|| format!("cannot read {}", sources.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().unwrap_or_default()))
                .with_context(|| format!("cannot copy {} to {shown}", path.display()))?;
        }
    }
    let native = built.join("lib_calmix.so");
    fs::copy(&native, package.join("_calmix.abi3.so"))
        .with_context(|| format!("cannot copy {} to {shown}", native.display()))?;
    Ok(folder.to_owned())
}

/// The package, and PyTorch, whose tensors it takes.
fn paths(package: &Path) -> Result<String> {
    let python = venv::python(venv::PYTORCH)?;
    let find = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output = Command::new(python).args(["-c", find]).output().context("cannot start python")?;
    let torch = String::from_utf8(output.stdout).context("the path of PyTorch is not text")?;
    Ok(format!("{}:{}", package.display(), torch.trim()))
}

/// The folder that cargo builds into.
fn target_folder() -> Result<PathBuf> {
    let metadata = workspace::metadata()?;
    let folder = metadata.get("target_directory").and_then(Value::as_str);
    Ok(folder.context("cargo metadata names no target folder")?.into())
}
