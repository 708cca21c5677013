//! Lets what is linked here find libtorch without `LD_LIBRARY_PATH`, and the binary see GPUs.
// Cargo reads a build script's output.
#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // From the build script of calmix-engine.
    let Ok(folder) = std::env::var("DEP_CALMIX_ENGINE_RPATH") else { return };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    // Tests ask the Python that this libtorch belongs to.
    println!("cargo::rustc-env=CALMIX_LIBTORCH_LIBRARIES={folder}");
    // Nothing calls CUDA's half of libtorch by name, so the linker would leave it out. Loading it takes a fifth of a
    // second, which tests can do without.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--no-as-needed,-ltorch");
    }
}
