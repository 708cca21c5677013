//! Lets what is linked here find libtorch without `LD_LIBRARY_PATH`, and the binary see GPUs.
// Cargo reads a build script's output.
#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // From the build script of calmix-engine.
    let Ok(folder) = std::env::var("DEP_CALMIX_ENGINE_RPATH") else { return };
    // A program for other machines looks in folders beside its own: `xtask/src/wheels/build.rs` names them.
    println!("cargo::rerun-if-env-changed=CALMIX_RUNPATH");
    let runpath = std::env::var("CALMIX_RUNPATH").unwrap_or_else(|_| folder.clone());
    println!("cargo::rustc-link-arg=-Wl,-rpath,{runpath}");
    // Tests ask the Python that this libtorch belongs to.
    println!("cargo::rustc-env=CALMIX_LIBTORCH_LIBRARIES={folder}");
    // Nothing calls CUDA's half of libtorch by name, so the linker would leave it out. Loading it takes a fifth of a
    // second at every start, so a debug build links it only on request: tests start the binary a thousand times.
    println!("cargo::rerun-if-env-changed=CALMIX_CUDA");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let is_requested = std::env::var("CALMIX_CUDA").is_ok_and(|value| value == "1");
    if is_linux && (is_release || is_requested) {
        println!("cargo::rustc-link-arg-bins=-Wl,--no-as-needed,-ltorch");
    }
}
