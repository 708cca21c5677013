//! Python environments in the cache: for tools, for libtorch, for tests, and for the peers of `bench`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::attempts::attempt;
use crate::cache::Installed;

/// PyTorch, in the only version that `crates/calmix-dist/build/libtorch.rs` accepts.
pub(crate) const TORCH: &str = "torch==2.13.0";

/// NumPy, for all scripts.
pub(crate) const NUMPY: &str = "numpy==2.4.6";

/// The environment with the libtorch that the engine links, and the PyTorch that it is compared with.
pub(crate) const PYTORCH: &[&str] = &[TORCH, NUMPY, "safetensors==0.8.0"];

/// Returns whether the environment with these packages exists.
pub(super) fn is_there(packages: &[&str]) -> Result<bool> {
    Ok(installed(packages)?.is_complete())
}

/// Returns the interpreter of an environment with exactly these packages (`name==version`), which is created if necessary.
pub(crate) fn python(packages: &[&str]) -> Result<PathBuf> {
    let installed = installed(packages)?;
    if !installed.is_complete() {
        eprintln!("python: creating an environment with {}", packages.join(", "));
    }
    installed.ensure(|folder| create(folder, packages))?;
    let program = programs(&installed.folder).join("python");
    Ok(program.with_extension(std::env::consts::EXE_EXTENSION))
}

fn installed(packages: &[&str]) -> Result<Installed> {
    let name = packages.join("+").replace("==", "-");
    Installed::named(&format!("python/{name}"))
}

/// Creates an environment in `folder` and installs the packages.
pub(super) fn create(folder: &Path, packages: &[&str]) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder)).context(
        "a Python environment cannot be created; it needs Python 3 with its venv module (Debian: python3-venv)",
    )?;
    install(&programs(folder).join("python"), &[], packages)
}

/// Returns a folder in the cache with only these packages, for `PYTHONPATH`; they are unpacked if necessary.
pub(crate) fn unpacked(python: &Path, packages: &[&str]) -> Result<PathBuf> {
    let installed = installed(packages)?;
    installed.ensure(|folder| unpack(python, folder, packages))?;
    Ok(installed.folder)
}

/// Unpacks packages without their dependencies into a folder that is not on any interpreter's path.
pub(super) fn unpack(python: &Path, folder: &Path, packages: &[&str]) -> Result<()> {
    install(python, &["--no-deps".as_ref(), "--target".as_ref(), folder.as_os_str()], packages)
}

fn install(python: &Path, options: &[&OsStr], packages: &[&str]) -> Result<()> {
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    attempt("pip", || run(Command::new(python).args(quiet).args(options).args(packages)))
        .with_context(|| format!("pip cannot install {}", packages.join(", ")))
}

/// Returns the package folder of an environment, for `PYTHONPATH`.
pub(crate) fn site_packages(python: &Path) -> Result<PathBuf> {
    let find = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output = Command::new(python).args(["-c", find]).output().context("cannot start python")?;
    let folder = String::from_utf8(output.stdout).context("the path of the packages is not text")?;
    Ok(folder.trim().into())
}

/// Downloads the file of a package without its dependencies into a folder.
pub(crate) fn download(folder: &Path, package: &str) -> Result<()> {
    let command = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest"];
    let python = python(PYTORCH)?;
    attempt("pip", || run(Command::new(&python).args(command).arg(folder).arg(package)))
        .with_context(|| format!("pip cannot download {package}"))
}

/// Returns the folder of an environment's programs.
pub(super) fn programs(folder: &Path) -> PathBuf {
    folder.join("bin")
}

/// Runs a command silently; its output is in the error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{program} ended with {}:\n{}", output.status, String::from_utf8_lossy(&text).trim());
    }
    Ok(())
}
