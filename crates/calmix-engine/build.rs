//! Passes on what calmix-dist found out about libtorch: to the tests, and to the build scripts of dependent crates.
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
    // Not set on systems without an rpath.
    if let Ok(folder) = told("RPATH") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
        println!("cargo::metadata=RPATH={folder}");
    }
}
