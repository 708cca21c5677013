//! The platforms that have a wheel of the Python library, and how each is compiled on Linux.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::setup::venv;
use crate::workspace;

/// The C compiler and linker, with the headers of every glibc, and the cargo command that uses it.
const ZIG: &[&str] = &["cargo-zigbuild==0.24.0", "ziglang==0.17.0"];

/// The glibc of RHEL 8, Debian 10 and Ubuntu 20.04: the oldest that NumPy and ONNX Runtime have wheels for.
const GLIBC: &str = "2.28";

/// An operating system on a kind of processor.
#[derive(Debug, PartialEq)]
pub(super) struct Platform {
    /// Its name in Rust.
    pub(super) triple: &'static str,
    /// Its name in a wheel.
    pub(super) tag: &'static str,
    system: System,
}

#[derive(Debug, PartialEq)]
enum System {
    Linux,
    /// The oldest version that the compiler makes programs for, which the tag repeats.
    MacOs(&'static str),
    Windows,
}

/// All platforms. The first is that of the other wheels and the default.
pub(super) const PLATFORMS: [Platform; 5] = [
    Platform { triple: "x86_64-unknown-linux-gnu", tag: "manylinux_2_28_x86_64", system: System::Linux },
    Platform { triple: "aarch64-unknown-linux-gnu", tag: "manylinux_2_28_aarch64", system: System::Linux },
    Platform { triple: "x86_64-pc-windows-gnu", tag: "win_amd64", system: System::Windows },
    Platform { triple: "aarch64-apple-darwin", tag: "macosx_11_0_arm64", system: System::MacOs("11.0") },
    Platform { triple: "x86_64-apple-darwin", tag: "macosx_10_12_x86_64", system: System::MacOs("10.12") },
];

impl Platform {
    pub(super) fn named(triple: &str) -> Result<&'static Self> {
        let known = PLATFORMS.map(|platform| platform.triple).join(", ");
        PLATFORMS
            .iter()
            .find(|platform| platform.triple == triple)
            .with_context(|| format!("there are no wheels for {triple:?}; the targets are {known}"))
    }

    /// Returns the file name of the command.
    pub(super) fn program(&self) -> &'static str {
        if self.system == System::Windows { "calmix.exe" } else { "calmix" }
    }

    /// Returns the file name of the extension module as cargo writes it.
    pub(super) fn library(&self) -> &'static str {
        match self.system {
            System::Linux => "lib_calmix.so",
            System::MacOs(_) => "lib_calmix.dylib",
            System::Windows => "_calmix.dll",
        }
    }

    /// Returns the place of the extension module in the wheel, by which Python finds it.
    pub(super) fn module(&self) -> &'static str {
        // On Windows the stable interface has no ending of its own.
        if self.system == System::Windows { "calmix/_calmix.pyd" } else { "calmix/_calmix.abi3.so" }
    }

    /// Returns the command that compiles for this platform, without packages.
    pub(super) fn cargo_build(&self) -> Result<Command> {
        let mut command = workspace::cargo();
        match self.system {
            // Zig has no linker for this target that rustc's own start-up files agree with; rustc finds MinGW's by itself.
            System::Windows => command.args(["build", "--target", self.triple]),
            System::Linux => command.arg("zigbuild").arg("--target").arg(format!("{}.{GLIBC}", self.triple)),
            System::MacOs(_) => command.args(["zigbuild", "--target", self.triple]),
        };
        if self.system != System::Windows {
            let python = venv::python(ZIG)?;
            let zig = venv::site_packages(&python)?.join("ziglang/zig");
            let programs = python.parent().context("the Python interpreter is not in a folder")?;
            // Cargo finds the command `zigbuild` on the path.
            command.env("PATH", with_folder(programs)?).env("CARGO_ZIGBUILD_ZIG_PATH", zig);
        }
        if let System::MacOs(version) = self.system {
            command.env("MACOSX_DEPLOYMENT_TARGET", version);
        }
        Ok(command)
    }

    /// Returns the options of rustc for this platform.
    pub(super) fn rust_flags(&self) -> Vec<String> {
        match self.system {
            System::Linux => Vec::new(),
            // The time of the build is in the header otherwise, and the same sources give other bytes.
            System::Windows => vec!["-Clink-arg=-Wl,--no-insert-timestamp".to_owned()],
            System::MacOs(_) => vec![format!("-Clink-arg=-F{}", frameworks().display())],
        }
    }
}

/// Returns the folder with the lists of symbols of Apple's libraries that zig does not bring.
fn frameworks() -> PathBuf {
    workspace::root().join("xtask/src/wheels/frameworks")
}

/// Returns the path of programs with one more folder at its head.
fn with_folder(folder: &Path) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("the path of programs cannot be extended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_repeat_the_oldest_system() {
        for platform in &PLATFORMS {
            let oldest = match platform.system {
                System::Linux => format!("manylinux_{GLIBC}_"),
                System::MacOs(version) => format!("macosx_{version}_"),
                System::Windows => "win_".to_owned(),
            };
            assert!(platform.tag.starts_with(&oldest.replace('.', "_")), "{platform:?}");
        }
    }

    #[test]
    fn unknown_target_names_the_known_ones() {
        let refused = Platform::named("riscv64gc-unknown-linux-gnu").expect_err("no such wheel").to_string();
        assert!(refused.contains("riscv64gc") && refused.contains("aarch64-apple-darwin"), "{refused}");
    }
}
