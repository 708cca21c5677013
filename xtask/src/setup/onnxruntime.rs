//! The libraries of ONNX Runtime in the cache, where `calmix` finds them in a clone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{ONNX, ONNXRUNTIME, venv};
use crate::cache::Installed;

/// The last version for Python 3.10 and for Macs with Intel processors. The tests of calmix-ort also run it.
const OLDER: &str = "onnxruntime==1.23.2";

/// Copies the library from the environment for exported models, and downloads the older one.
pub(super) fn install() -> Result<()> {
    let python = venv::python(ONNX)?;
    let packages = venv::site_packages(&python)?;
    let newest = installed(ONNXRUNTIME)?;
    newest.ensure(|folder| take_library(&packages, folder))?;
    println!("setup: onnxruntime is installed: {}", newest.folder.display());
    let older = installed(OLDER)?;
    older.ensure(|folder| {
        let wheel = folder.join("wheel");
        venv::unpack(&python, &wheel, &[OLDER])?;
        take_library(&wheel, folder)?;
        fs::remove_dir_all(&wheel).with_context(|| format!("cannot remove {}", wheel.display()))
    })?;
    println!("setup: onnxruntime is installed: {}", older.folder.display());
    Ok(())
}

/// Returns the library that commands in a clone use.
pub(crate) fn library() -> Result<PathBuf> {
    library_in(&installed(ONNXRUNTIME)?.folder)
}

/// Returns the installation in `onnxruntime/1.31.1`.
fn installed(package: &str) -> Result<Installed> {
    Installed::named(&package.replace("==", "/"))
}

/// Copies the library from a folder of Python packages. It appears atomically, because calmix loads any file with its name.
fn take_library(packages: &Path, folder: &Path) -> Result<()> {
    let library = library_in(&packages.join("onnxruntime").join("capi"))?;
    let name = library.file_name().context("a library without a name")?;
    let partial = folder.join("partial");
    fs::copy(&library, &partial).with_context(|| format!("cannot copy {}", library.display()))?;
    fs::rename(&partial, folder.join(name)).with_context(|| format!("cannot name {}", partial.display()))
}

/// Returns the file `libonnxruntime.so.1.31.1`, on macOS `libonnxruntime.1.31.1.dylib`.
fn library_in(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    let is_library = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libonnxruntime.")
    };
    files.find(is_library).with_context(|| format!("{} has no libonnxruntime", folder.display()))
}
