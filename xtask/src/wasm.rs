//! `cargo xtask wasm`: the program in the page of `calmix review --live`, which is kept in the repository, so that calmix builds without
//! the target for WebAssembly.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// WebAssembly with the interface of WASI: the program reads its input and writes its output, without unsafe code of ours.
const TARGET: &str = "wasm32-wasip1";
const PROGRAM: &str = "crates/calmix-report/src/review_page/live.wasm";
/// The maximum size of the program, which every page carries.
const MAX_BYTES: usize = 1 << 20;
/// Separates flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\x1f";

/// Builds the program and writes it into the repository.
pub(crate) fn write() -> Result<()> {
    install()?;
    let program = build()?;
    let path = workspace::root().join(PROGRAM);
    fs::write(&path, &program).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wasm: {PROGRAM}, {} bytes", program.len());
    Ok(())
}

/// Builds the program and compares it with the one in the repository.
pub(crate) fn check() -> Result<()> {
    let program = build()?;
    ensure!(program.len() <= MAX_BYTES, "the program has {} bytes, more than {MAX_BYTES}", program.len());
    let path = workspace::root().join(PROGRAM);
    let kept = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(
        program == kept,
        "{PROGRAM} is not what the sources make: `cargo xtask wasm` writes it again, for the toolchain of rust-toolchain.toml"
    );
    Ok(())
}

/// Adds the target to the toolchain.
pub(crate) fn install() -> Result<()> {
    if is_installed() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]).current_dir(workspace::root());
    let status = rustup.status().context("cannot start rustup to add the target wasm32-wasip1")?;
    ensure!(status.success(), "`rustup target add {TARGET}` ended with {status}");
    Ok(())
}

/// Returns whether the toolchain has the target's standard library.
pub(crate) fn is_installed() -> bool {
    let mut rustc = Command::new("rustc");
    let output =
        rustc.args(["--print", "target-libdir", "--target", TARGET]).current_dir(workspace::root()).output();
    output.is_ok_and(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn build() -> Result<Vec<u8>> {
    let metadata = workspace::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let mut flags = vec!["-Ctarget-feature=+simd128".to_owned()];
    // Messages of panics name files: not where this machine has them.
    for folder in registries() {
        flags.push(format!("--remap-path-prefix={}=registry", folder.display()));
    }
    flags.push(format!("--remap-path-prefix={}=.", workspace::root().display()));
    let mut cargo = workspace::cargo();
    cargo.args([
        "build",
        "--locked",
        "--quiet",
        "--profile=wasm",
        "--package=calmix-live",
        "--bin=calmix-live",
    ]);
    cargo.args(["--target", TARGET]).env_remove("RUSTFLAGS");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join(SEPARATOR));
    let status = cargo.status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo build of the program ended with {status}");
    let path = Path::new(target).join(TARGET).join("wasm/calmix-live.wasm");
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the folders of the sources of other crates.
fn registries() -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let entries = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok());
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
