//! Hands on what calmix-dist found of libtorch: to our tests, and to the build scripts of crates that use this one.
// Cargo reads a build script's output.
#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let told = |name: &str| std::env::var(format!("DEP_CALMIX_DIST_{name}"));
    // Where tests find the Python that this libtorch belongs to.
    for (name, from) in [("CALMIX_LIBTORCH", "LIBTORCH"), ("CALMIX_LIBTORCH_VERSION", "VERSION")] {
        if let Ok(value) = told(from) {
            println!("cargo::rustc-env={name}={value}");
        }
    }
    // There is none where the system has no such thing.
    if let Ok(folder) = told("RPATH") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
        println!("cargo::metadata=RPATH={folder}");
    }
}
