//! The version of this program: commit, features and platform.

use std::sync::LazyLock;

use calmix_run::run::Build;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The hash of the commit, with `-dirty` after it if files were changed since; `unknown` if it was built without git.
pub const COMMIT: &str = env!("CALMIX_COMMIT");
/// The platform, as compilers name it.
pub const TARGET: &str = env!("CALMIX_TARGET");

/// The optional features that are compiled in.
pub fn features() -> impl Iterator<Item = &'static str> {
    env!("CALMIX_FEATURES").split(',').filter(|name| !name.is_empty())
}

/// The optional features of a program in a line.
pub fn features_shown(features: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<&str> = features.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The commit and the features of a program, as a run records them.
pub fn build(features: impl Iterator<Item = &'static str>) -> Build {
    Build { commit: COMMIT.to_owned(), features: features.map(str::to_owned).collect() }
}

/// What `calmix --version` prints; `-V` prints the version alone.
pub fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let features = features_shown(features());
        format!(
            "{VERSION}\n\
             commit    {COMMIT}\n\
             features  {features}\n\
             target    {TARGET}"
        )
    });
    &TEXT
}
