//! With the feature `engine`: sets the rpath, so that the program finds libtorch without `LD_LIBRARY_PATH`, and links CUDA.
// Cargo reads a build script's output.
#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Set by the build script of calmix-engine.
    let Ok(folder) = std::env::var("DEP_CALMIX_ENGINE_RPATH") else { return };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    // No code calls the CUDA part of libtorch by name, so the linker would drop it. Loading it takes a fifth of a second at every
    // start, so a debug build links it only on request: tests start the binary a thousand times.
    println!("cargo::rerun-if-env-changed=CALMIX_CUDA");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let is_requested = std::env::var("CALMIX_CUDA").is_ok_and(|value| value == "1");
    if is_linux && (is_release || is_requested) {
        println!("cargo::rustc-link-arg-bins=-Wl,--no-as-needed,-ltorch");
    }
}
