//! The compiled parts of the wheels, for every x86-64 processor and without paths of this machine, and the tools that pack them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::setup::{libtorch, venv};
use crate::workspace;

/// The path on which `calmix-torch` finds libtorch: `calmix_cpu/lib`, or the `torch` beside `calmix_torch`.
const RUNPATH: &str = "$ORIGIN/lib:$ORIGIN/../torch/lib";

/// A build in its own target folder, because its flags differ from those of other builds.
pub(super) struct Build<'a> {
    pub(super) profile: &'a str,
    pub(super) version: String,
    /// The PyTorch package whose libtorch is linked.
    pub(super) torch: PathBuf,
    /// The folder in which the files of wheels are collected.
    pub(super) stage: PathBuf,
    target: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl<'a> Build<'a> {
    pub(super) fn new(profile: &'a str) -> Result<Self> {
        let metadata = workspace::metadata()?;
        let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
        let target = Path::new(target).join("wheels");
        let torch = libtorch::package(&venv::python(venv::PYTORCH)?)?;
        let stage = target.join("stage");
        fs::create_dir_all(&stage).with_context(|| format!("cannot create {}", stage.display()))?;
        let variables = variables(&target, &torch)?;
        Ok(Self { profile, version: env!("CARGO_PKG_VERSION").to_owned(), torch, stage, target, variables })
    }

    /// Compiles packages with their default features.
    ///
    /// All in one command, so that all programs state the same commit and cargo unifies the features of all crates. On its own,
    /// the extension module has fewer features (`calmix` without `https`), so cargo would compile almost every crate twice.
    pub(super) fn compile(&self, packages: &[&str]) -> Result<()> {
        if packages.is_empty() {
            return Ok(());
        }
        let mut command = workspace::cargo();
        command.args(["build", "--locked", "--profile", self.profile]);
        command.args(packages.iter().flat_map(|package| ["-p", package]));
        // Both variables would select another libtorch.
        command.env_remove("LIBTORCH_USE_PYTORCH").env_remove("LIBTORCH_LIB");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let status = command.status().context("cannot start cargo")?;
        ensure!(status.success(), "the programs and the extension module do not build");
        Ok(())
    }

    /// Returns the file of a program or of the extension module.
    pub(super) fn product(&self, name: &str) -> PathBuf {
        self.target.join(self.profile).join(name)
    }
}

/// Returns the environment variables of the build.
fn variables(target: &Path, torch: &Path) -> Result<Vec<(&'static str, OsString)>> {
    let root = workspace::root();
    let mut rust = Vec::new();
    let mut c = Vec::new();
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo =
        cargo.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("there is no home folder")?;
    // If both prefixes match, the later one applies.
    let folders = [
        (cargo, "/cargo"),
        (sysroot()?, "/rust"),
        (root, "/calmix"),
        (target.into(), "/target"),
        (torch.into(), "/torch"),
    ];
    for (folder, name) in &folders {
        let folder = text(folder)?;
        rust.push(format!("--remap-path-prefix={folder}={name}"));
        c.push(format!("-ffile-prefix-map={folder}={name}"));
    }
    let c = c.join(" ");
    Ok(vec![
        ("CARGO_TARGET_DIR", target.into()),
        // These replace the flags in `.cargo/config.toml`, including its target processor.
        ("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}").into()),
        ("CFLAGS", c.clone().into()),
        ("CXXFLAGS", c.into()),
        ("LIBTORCH", torch.into()),
        ("CALMIX_RUNPATH", RUNPATH.into()),
        // Otherwise PyO3 links the libpython of this machine; no program contains PyO3.
        ("PYO3_BUILD_EXTENSION_MODULE", "1".into()),
    ])
}

/// Returns a path as text for a compiler option.
fn text(path: &Path) -> Result<&str> {
    let text = path.to_str().filter(|text| !text.contains(char::is_whitespace));
    text.with_context(|| format!("{}: compilers cannot be given a path with a space", path.display()))
}

/// Returns the sysroot of the Rust compiler.
fn sysroot() -> Result<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).current_dir(workspace::root()).output();
    let output = output.context("cannot start rustc")?;
    let printed = String::from_utf8(output.stdout).context("the name of rustc's folder is not UTF-8")?;
    Ok(printed.trim().into())
}

/// The tools: uv and pipx install the wheels in the test, and auditwheel shows the glibc that they need.
const TOOLS: &[&str] =
    &["auditwheel==6.8.2", "maturin==1.16.0", "pipx==1.18.4", "uv==0.13.7", "wheel==0.48.0"];

/// Returns a program of the environment, which is created if necessary.
pub(super) fn tool(name: &str) -> Result<PathBuf> {
    let python = venv::python(TOOLS)?;
    let programs = python.parent().context("the Python interpreter is not in a folder")?;
    Ok(programs.join(name))
}
