//! Refuses any libtorch of another version, compiles the binding to c10d, and sets the rpath so that linked programs start
//! without `LD_LIBRARY_PATH`.
//!
//! torch-sys does not look at the version of a Python package named by `LIBTORCH`; it would compile for minutes and
//! end with pages of C++ errors, or succeed and crash later. If there is no libtorch at all, its own error may come first.
// Cargo reads a build script's output.
#![allow(clippy::print_stdout)]

#[path = "build/libtorch.rs"]
mod libtorch;
#[path = "build/nccl.rs"]
mod nccl;

use std::process::ExitCode;

use libtorch::Libtorch;

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
    // As DEP_CALMIX_DIST_*, for the build scripts of crates that use this one.
    println!("cargo::metadata=VERSION={}", libtorch::NEEDED);
    if std::env::var_os("CARGO_FEATURE_DOC_ONLY").is_some() {
        return Ok(());
    }
    let found = libtorch::find()?;
    println!("cargo::rerun-if-changed={}", found.check_version()?.display());
    println!("cargo::metadata=LIBTORCH={}", found.folder.display());
    // For our tests.
    println!("cargo::rustc-env=CALMIX_LIBTORCH={}", found.folder.display());
    // Windows has no such thing; there the folder has to be on the PATH.
    if std::env::var_os("CARGO_CFG_UNIX").is_some() {
        let libraries = found.libraries.display();
        // One folder is enough: the libraries in it name the folders of CUDA's beside them.
        println!("cargo::rustc-link-arg=-Wl,-rpath,{libraries}");
        println!("cargo::metadata=RPATH={libraries}");
    }
    compile(&found)
}

fn compile(found: &Libtorch) -> Result<(), String> {
    println!("cargo::rerun-if-changed=shim");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++20").warnings(false).files(["shim/c10d.cpp", "shim/gpu.cpp"]).include("shim");
    // Wrapper code around waiting: its speed does not show, its compile time does.
    build.opt_level(1).debug(false);
    for headers in ["include", "include/torch/csrc/api/include"] {
        build.include(found.headers.join(headers));
    }
    build.define("USE_C10D_GLOO", None);
    let mut libraries = vec!["torch_cpu", "c10"];
    if std::env::var_os("CARGO_FEATURE_NCCL").is_some() {
        build.define("USE_C10D_NCCL", None).includes(nccl::headers(&found.folder)?);
        libraries.splice(0..0, ["torch_cuda", "c10_cuda"]);
    }
    build.try_compile("calmix_c10d").map_err(|error| {
        format!(
            "the binding to libtorch's process groups does not compile; it needs a C++20 compiler: {error}"
        )
    })?;
    println!("cargo::rustc-link-search=native={}", found.libraries.display());
    for library in libraries {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    Ok(())
}
