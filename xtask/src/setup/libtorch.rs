//! libtorch, from PyTorch's Python package, in an environment in the cache.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::{attempts, venv};
use crate::cache::Installed;
use crate::human_time::human_time;
use crate::workspace;

/// The disk space that PyTorch's package and its dependencies need.
const BYTES: u64 = 8 << 30;

/// Installs libtorch and writes its path for cargo, unless the user names a libtorch.
pub(super) fn install() -> Result<()> {
    let file = workspace::root().join(".cargo/libtorch.toml");
    let written = fs::read_to_string(&file).unwrap_or_default();
    if let Some(variable) = named_by_user(&written, |name| std::env::var_os(name)) {
        println!(
            "setup: {variable} is set, so the build uses the libtorch that it names and none is installed"
        );
        return Ok(());
    }
    let is_installed = venv::is_there(venv::PYTORCH)?;
    if !is_installed {
        println!(
            "setup: installing libtorch with PyTorch: about 5 GB with CUDA's libraries, which takes some minutes"
        );
        attempts::require_space(BYTES, "libtorch")?;
    }
    let began = Instant::now();
    let python = venv::python(venv::PYTORCH)?;
    let folder = package(&python)?;
    add_headers(&python)?;
    let shown = folder.display();
    fs::write(&file, text(&folder)?).with_context(|| format!("cannot write {}", file.display()))?;
    if is_installed {
        println!("setup: libtorch is installed: {shown}");
    } else {
        println!("setup: libtorch installed in {}: {shown}", human_time(began.elapsed()));
    }
    Ok(())
}

/// Adds the CUDA headers that PyTorch's package lacks, for the feature `nccl` of calmix-dist, which looks for them in this folder
/// of the environment (`build/nccl.rs`).
///
/// They are not packages of the environment, because its folder is named after its packages and would be created again.
fn add_headers(python: &Path) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let environment = python.ancestors().nth(2).context("the Python interpreter is not in an environment")?;
    let headers = Installed { folder: environment.join("cuda-headers") };
    headers.ensure(|folder| {
        venv::unpack(python, folder, &["nvidia-cuda-crt==13.0.88", "nvidia-cuda-cccl==13.0.85"])
    })?;
    Ok(())
}

/// Fails if torch-sys would not find libtorch; its own error does not mention `setup`.
pub(crate) fn require() -> Result<()> {
    // Cargo sets LIBTORCH from the file that `install` wrote.
    let named = ["LIBTORCH", "LIBTORCH_USE_PYTORCH"].iter().any(|name| std::env::var_os(name).is_some());
    ensure!(
        named || Path::new("/usr/lib/libtorch.so").exists(),
        "libtorch is not installed; run `cargo xtask setup`"
    );
    Ok(())
}

/// Returns the variable by which the user names a libtorch.
///
/// Cargo passes on the path that an earlier setup wrote as if it were in the environment; that does not count.
fn named_by_user<V: AsRef<OsStr>>(written: &str, value: impl Fn(&str) -> Option<V>) -> Option<&'static str> {
    if value("LIBTORCH_USE_PYTORCH").is_some() {
        return Some("LIBTORCH_USE_PYTORCH");
    }
    let folder = value("LIBTORCH")?;
    let ours = entry(Path::new(&folder)).is_ok_and(|entry| written.lines().any(|line| line == entry));
    (!ours).then_some("LIBTORCH")
}

/// Returns the folder of the package torch, without importing it, which would take seconds.
pub(crate) fn package(python: &Path) -> Result<PathBuf> {
    let ask = "import importlib.util; print(importlib.util.find_spec('torch').origin)";
    let output = Command::new(python).args(["-c", ask]).output();
    let output = output.with_context(|| format!("cannot start {}", python.display()))?;
    let origin = String::from_utf8(output.stdout).context("the name of torch's folder is not UTF-8")?;
    let folder = Path::new(origin.trim()).parent().filter(|folder| folder.join("lib").is_dir());
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(folder.with_context(|| format!("the torch of {} lacks its libraries", python.display()))?.to_owned())
}

fn text(folder: &Path) -> Result<String> {
    Ok(format!(
        "# Written by `cargo xtask setup`. What the environment says wins: LIBTORCH or LIBTORCH_USE_PYTORCH.\n\
         [env]\n{}\n",
        entry(folder)?
    ))
}

/// Formats a line of TOML; its strings are written like those of JSON.
fn entry(folder: &Path) -> Result<String> {
    let folder = folder.to_str().context("the name of libtorch's folder is not UTF-8")?;
    Ok(format!("LIBTORCH = {}", serde_json::to_string(folder)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtorch_path_of_setup_is_not_a_user_choice() {
        let written = text(Path::new("/cache/a \"b\"/torch")).expect("UTF-8");
        let with = |name: &'static str, folder: &'static str| {
            named_by_user(&written, move |asked| (asked == name).then_some(folder))
        };
        assert_eq!(with("LIBTORCH", "/cache/a \"b\"/torch"), None);
        assert_eq!(with("LIBTORCH", "/cache/a"), Some("LIBTORCH"));
        assert_eq!(with("LIBTORCH_USE_PYTORCH", "1"), Some("LIBTORCH_USE_PYTORCH"));
        assert_eq!(with("HOME", "/"), None);
        assert_eq!(named_by_user("", |name| (name == "LIBTORCH").then_some("")), Some("LIBTORCH"));
    }

    #[test]
    fn installed_libtorch_version_is_accepted_by_build() {
        let finder = workspace::root().join("crates/calmix-dist/build/libtorch.rs");
        let finder = fs::read_to_string(finder).expect("the build script of calmix-dist");
        let version = venv::TORCH.trim_start_matches("torch==");
        assert!(finder.contains(&format!("NEEDED: &str = \"{version}\"")));
    }
}
