//! The compiled parts of the wheels, for every processor of a platform and without paths of this machine, and the tools that pack
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::platform::Platform;
use crate::setup::venv;
use crate::workspace;

/// The path on which `calmix-torch` finds libtorch: `calmix_cpu/lib`, or the `torch` beside `calmix_torch`.
const RUNPATH: &str = "$ORIGIN/lib:$ORIGIN/../torch/lib";

/// A build in its own target folder, because its flags differ from those of other builds.
pub(super) struct Build<'a> {
    pub(super) profile: &'a str,
    pub(super) version: String,
    /// The folder in which the files of wheels are collected.
    pub(super) stage: PathBuf,
    target: PathBuf,
}

impl<'a> Build<'a> {
    pub(super) fn new(profile: &'a str) -> Result<Self> {
        let metadata = workspace::metadata()?;
        let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
        let target = Path::new(target).join("wheels");
        let stage = target.join("stage");
        fs::create_dir_all(&stage).with_context(|| format!("cannot create {}", stage.display()))?;
        Ok(Self { profile, version: env!("CARGO_PKG_VERSION").to_owned(), stage, target })
    }

    /// Compiles the program that links libtorch and returns its file.
    ///
    /// For this machine's glibc: libtorch needs GCC's C++ library, and zig has another.
    pub(super) fn torch_program(&self, torch: &Path) -> Result<PathBuf> {
        let mut command = workspace::cargo();
        command.arg("build").args(["-p", "calmix-torch"]);
        // Both variables would select another libtorch.
        command.env_remove("LIBTORCH_USE_PYTORCH").env_remove("LIBTORCH_LIB");
        command.env("LIBTORCH", torch).env("CALMIX_RUNPATH", RUNPATH);
        self.compile(command, Vec::new(), &[(torch.into(), "/torch")])?;
        Ok(self.target.join(self.profile).join("calmix-torch"))
    }

    /// Compiles the command and the extension module for a platform and returns the folder of their files.
    ///
    /// Both in one command, so that both state the same commit and cargo unifies the features of all crates. On its own,
    /// the extension module has fewer features (`calmix` without `https`), so cargo would compile almost every crate twice.
    pub(super) fn library(&self, platform: &Platform) -> Result<PathBuf> {
        let mut command = platform.cargo_build()?;
        command.args(["-p", "calmix", "-p", "calmix-python"]);
        self.compile(command, platform.rust_flags(), &[])?;
        Ok(self.target.join(platform.triple).join(self.profile))
    }

    /// Runs a build with the options of all wheels, and these of rustc. `more` are folders as in [`Self::folders`].
    fn compile(
        &self,
        mut command: Command,
        mut rust: Vec<String>,
        more: &[(PathBuf, &'static str)],
    ) -> Result<()> {
        let mut c = Vec::new();
        for (folder, name) in self.folders()?.iter().chain(more) {
            let folder = text(folder)?;
            rust.push(format!("--remap-path-prefix={folder}={name}"));
            c.push(format!("-ffile-prefix-map={folder}={name}"));
        }
        let c = c.join(" ");
        command.args(["--locked", "--profile", self.profile]).env("CARGO_TARGET_DIR", &self.target);
        // These replace the flags in `.cargo/config.toml`, including its target processor.
        command.env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"));
        command.env("CFLAGS", &c).env("CXXFLAGS", &c);
        // Symbols are a sixth of a file, and the linker of every platform can leave them out.
        let profile = self.profile.to_uppercase().replace('-', "_");
        command.env(format!("CARGO_PROFILE_{profile}_STRIP"), "symbols");
        // Otherwise PyO3 links the libpython of this machine; no program contains PyO3.
        command.env("PYO3_BUILD_EXTENSION_MODULE", "1");
        let status = command.status().context("cannot start cargo")?;
        ensure!(status.success(), "the programs and the extension module do not build");
        Ok(())
    }

    /// Returns the folders whose paths compilers would write into the files, and what they write instead.
    fn folders(&self) -> Result<[(PathBuf, &'static str); 4]> {
        let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let cargo = cargo
            .or_else(|| Some(std::env::home_dir()?.join(".cargo")))
            .context("there is no home folder")?;
        // If several prefixes match, the last one applies.
        Ok([
            (cargo, "/cargo"),
            (sysroot()?, "/rust"),
            (workspace::root(), "/calmix"),
            (self.target.clone(), "/target"),
        ])
    }
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
