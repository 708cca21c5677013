//! The tests of the Python package: builds its native part, the command and a program that draws measures, assembles the package
//! in the target folder, and runs pytest in an environment of the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::step::TESTED;
use crate::setup::{MLFLOW, ONNXRUNTIME, PYARROW, TORCHMETRICS, onnxruntime, venv};
use crate::{weights, workspace};

/// The packages that the tests use: the peers of the estimator and of the measures, and runtimes of exported models.
pub(crate) const TESTS: &[&str] =
    &[venv::NUMPY, "scikit-learn==1.9.1", "pandas==3.1.1", "pytest==9.2.0", ONNXRUNTIME, "onnx==1.23.2"];

/// The backbone of the notebook of photos.
const BACKBONE: &str = "tf_efficientnet_lite0";

/// Further packages that the package works with, in an environment of their own.
const NEIGHBOURS: &[&str] = &["polars==2.1.0", "huggingface_hub==2.4.0"];

/// netcal with the dependencies of its metrics; those of its other modules are large.
const NETCAL: &[&str] = &[
    "netcal==1.4.0",
    "matplotlib==3.10.8",
    "contourpy==1.3.3",
    "cycler==0.12.1",
    "kiwisolver==1.5.1",
    "pillow==13.0.0",
    "pyparsing==3.3.3",
    "python-dateutil==4.0.0",
    "six==1.17.0",
    "tqdm==4.70.1",
];

/// The packages whose prediction sets those of calmix are compared with; scikit-learn and pandas, which they need, are in [`TESTS`].
const SETS: &[&str] = &["mapie==1.6.0", "crepes==0.9.1", "cloudpickle==3.1.2"];

/// The program that draws and measures predictions, for comparison in a test.
const DRAWN_MEASURES: &str = "drawn_measures";

/// Builds the package and runs its tests and the examples in its documentation.
pub(crate) fn check() -> Result<()> {
    run(tests()?)
}

/// Runs all notebooks too. That of photos needs `$CALMIX_DATASETS` and weights, and is skipped without.
pub(crate) fn check_nightly() -> Result<()> {
    let mut command = tests()?;
    command.env("CALMIX_EXHAUSTIVE", "1").env("ORT_DYLIB_PATH", onnxruntime::library()?);
    if let Some(library) =
        weights::file(BACKBONE).ok().as_deref().and_then(Path::parent).and_then(Path::parent)
    {
        command.env("CALMIX_WEIGHTS", library);
    } else {
        command.env_remove("CALMIX_DATASETS");
    }
    run(command)
}

/// Builds the package and returns pytest of its tests.
fn tests() -> Result<Command> {
    let built = build()?;
    let package = package(&built)?;
    let neighbours = venv::site_packages(&venv::python(NEIGHBOURS)?)?;
    let pyarrow = venv::site_packages(&venv::python(&[PYARROW])?)?;
    let mut command = pytest(&[&package, &torch()?, &pyarrow, &neighbours])?;
    command.env("CALMIX_PROGRAM", built.join("calmix"));
    command.env("CALMIX_DRAWN_MEASURES", built.join("examples").join(DRAWN_MEASURES));
    command.args(["--doctest-modules", "tests"]).arg(package.join("calmix"));
    Ok(command)
}

/// Builds the package, runs its models in MLflow, and compares its measures with torchmetrics, netcal and scikit-learn, its prediction
/// sets with MAPIE and crepes, and its planner with the engine.
pub(crate) fn check_peers() -> Result<()> {
    let built = build()?;
    let package = package(&built)?;
    let mut mlflow = pytest_of(&venv::python(MLFLOW)?, &[&package, &torch()?])?;
    mlflow.env("CALMIX_PROGRAM", built.join("calmix")).arg("tests/test_mlflow.py");
    run(mlflow)?;
    let planner_case = planner_case()?;
    let python = venv::python(TESTS)?;
    let torchmetrics = venv::unpacked(&python, TORCHMETRICS)?;
    let netcal = venv::unpacked(&python, NETCAL)?;
    let sets = venv::unpacked(&python, SETS)?;
    let mut command = pytest(&[&package, &torch()?, &torchmetrics, &netcal, &sets])?;
    command.env("CALMIX_PLANNER_CASE", planner_case).arg("peers");
    run(command)
}

/// Builds what the tests run; returns the folder of the executables.
pub(super) fn build() -> Result<PathBuf> {
    let mut command = workspace::cargo();
    // Use the features of the tests, so that their compiled crates are reused.
    command.args(["build", "--locked"]).args(TESTED).args(["--lib", "--bins", "--example", DRAWN_MEASURES]);
    let status = command.status().context("cannot start cargo")?;
    ensure!(status.success(), "the native part of the package does not build");
    Ok(target_folder()?.join("debug"))
}

/// Runs a test of the engine that writes ten of its steps into a folder.
fn planner_case() -> Result<PathBuf> {
    let folder = target_folder()?.join("python/planner-case");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut command = workspace::cargo();
    command.args(["test", "--locked"]).args(TESTED).args([
        "--test",
        "parity",
        "ten_steps_are_recorded_for_python",
    ]);
    let status = command.env("CALMIX_PLANNER_CASE", &folder).status().context("cannot start cargo")?;
    ensure!(status.success(), "the engine cannot record steps");
    Ok(folder)
}

/// Returns pytest in the folder of the package, with these folders on Python's path.
fn pytest(folders: &[&Path]) -> Result<Command> {
    pytest_of(&venv::python(TESTS)?, folders)
}

/// Returns pytest of an interpreter, in the same folder.
fn pytest_of(python: &Path, folders: &[&Path]) -> Result<Command> {
    let mut command = Command::new(python);
    command.current_dir(workspace::root().join("bindings/python"));
    command.env("PYTHONPATH", std::env::join_paths(folders)?).env("PYTHONDONTWRITEBYTECODE", "1");
    command.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    Ok(command)
}

fn run(mut command: Command) -> Result<()> {
    let status = command.status().context("cannot start pytest")?;
    ensure!(status.success(), "tests of the Python package fail");
    Ok(())
}

/// Creates a folder for `PYTHONPATH` with the sources of the package and its native part.
pub(super) fn package(built: &Path) -> Result<PathBuf> {
    let folder = target_folder()?.join("python");
    let package = folder.join("calmix");
    let shown = package.display().to_string();
    workspace::empty_folder(&package)?;
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
    Ok(folder)
}

/// Returns the folder of PyTorch's package, whose tensors calmix accepts.
fn torch() -> Result<PathBuf> {
    venv::site_packages(&venv::python(venv::PYTORCH)?)
}

/// Returns cargo's target folder.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let metadata = workspace::metadata()?;
    let folder = metadata.get("target_directory").and_then(Value::as_str);
    Ok(folder.context("cargo metadata names no target folder")?.into())
}
