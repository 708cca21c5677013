//! Refuses any libtorch but the right one, and lets what is linked with it start without `LD_LIBRARY_PATH`.
//!
//! torch-sys does not look at the version of a Python package named by `LIBTORCH`; it would compile for minutes and
//! end with pages of C++, or not end and crash later. Where there is no libtorch at all, its own error may come first.
// Cargo reads a build script's output.
#![allow(clippy::print_stdout)]

#[path = "build/libtorch.rs"]
mod libtorch;

use std::process::ExitCode;

fn main() -> ExitCode {
    match prepare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            println!("cargo::error={sentence}");
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> Result<(), String> {
    let found = libtorch::find()?;
    println!("cargo::rerun-if-changed={}", found.check_version()?.display());
    // Where tests find the Python that this libtorch belongs to.
    println!("cargo::rustc-env=CALMIX_LIBTORCH={}", found.folder.display());
    println!("cargo::rustc-env=CALMIX_LIBTORCH_VERSION={}", libtorch::NEEDED);
    // Windows has no such thing; there the folder has to be on the PATH.
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        let libraries = found.libraries.display();
        // One folder is enough: the libraries in it name the folders of CUDA's beside them.
        println!("cargo::rustc-link-arg=-Wl,-rpath,{libraries}");
        println!("cargo::metadata=RPATH={libraries}");
    }
    Ok(())
}
