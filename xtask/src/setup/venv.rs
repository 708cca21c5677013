//! Python environments in the cache: for tools, for libtorch, for tests, and for the peers of `bench`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::attempts::attempt;
use crate::cache::Installed;

/// PyTorch; `crates/calmix-dist/build/libtorch.rs` accepts this version and no other.
pub(crate) const TORCH: &str = "torch==2.13.0";

/// NumPy, as all scripts here use it.
pub(crate) const NUMPY: &str = "numpy==2.4.6";

/// The environment whose libtorch the engine links, and whose PyTorch it is compared with.
pub(crate) const PYTORCH: &[&str] = &[TORCH, NUMPY, "safetensors==0.8.0"];

/// Whether the environment with these packages exists.
pub(super) fn is_there(packages: &[&str]) -> Result<bool> {
    Ok(installed(packages)?.is_complete())
}

/// The interpreter of an environment with exactly these packages (`name==version`), created when needed.
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

/// A folder in the cache with these packages alone, for `PYTHONPATH`; unpacked when needed.
pub(crate) fn unpacked(python: &Path, packages: &[&str]) -> Result<PathBuf> {
    let installed = installed(packages)?;
    installed.ensure(|folder| unpack(python, folder, packages))?;
    Ok(installed.folder)
}

/// Unpacks packages, without what they depend on, into a folder that no interpreter looks into.
pub(super) fn unpack(python: &Path, folder: &Path, packages: &[&str]) -> Result<()> {
    install(python, &["--no-deps".as_ref(), "--target".as_ref(), folder.as_os_str()], packages)
}

fn install(python: &Path, options: &[&OsStr], packages: &[&str]) -> Result<()> {
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    attempt("pip", || run(Command::new(python).args(quiet).args(options).args(packages)))
        .with_context(|| format!("pip cannot install {}", packages.join(", ")))
}

/// The folder of the packages of an environment, for `PYTHONPATH`.
pub(crate) fn site_packages(python: &Path) -> Result<PathBuf> {
    let find = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output = Command::new(python).args(["-c", find]).output().context("cannot start python")?;
    let folder = String::from_utf8(output.stdout).context("the path of the packages is not text")?;
    Ok(folder.trim().into())
}

/// Fetches the file of a package, without what it depends on, into a folder.
pub(crate) fn download(folder: &Path, package: &str) -> Result<()> {
    let command = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest"];
    let python = python(PYTORCH)?;
    attempt("pip", || run(Command::new(&python).args(command).arg(folder).arg(package)))
        .with_context(|| format!("pip cannot download {package}"))
}

/// Where an environment keeps its programs.
pub(super) fn programs(folder: &Path) -> PathBuf {
    folder.join("bin")
}

/// Runs a command silently; what it printed is in the error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{program} ended with {}:\n{}", output.status, String::from_utf8_lossy(&text).trim());
    }
    Ok(())
}
