//! Lets tests and examples that are linked with libtorch find it without `LD_LIBRARY_PATH`.
// Cargo reads a build script's output.
#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // From the build script of calmix-engine; there is none where the system has no such thing.
    let Ok(folder) = std::env::var("DEP_CALMIX_ENGINE_RPATH") else { return };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    // Where tests find the launcher that comes with it.
    println!("cargo::rustc-env=CALMIX_LIBTORCH_LIBRARIES={folder}");
}
