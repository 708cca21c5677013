//! Lets the binary know its own commit.
// Cargo reads a build script's output.
#![allow(clippy::print_stdout)]

#[path = "build/commit.rs"]
mod commit;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=CALMIX_COMMIT={}", commit::commit());
    println!("cargo::rustc-env=CALMIX_FEATURES={}", features());
    println!("cargo::rustc-env=CALMIX_TARGET={}", std::env::var("TARGET").unwrap_or_default());
}

/// The features of this package that are on, in alphabetical order, with commas between them.
fn features() -> String {
    let names =
        std::env::vars().filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase()));
    let mut names: Vec<String> = names.filter(|name| name != "default").collect();
    names.sort();
    names.join(",")
}
