//! The version of this program: commit, features and platform.

use std::sync::LazyLock;

use calmix_run::run::Build;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The hash of the commit, with `-dirty` if files were changed; `unknown` if it was built without git.
pub const COMMIT: &str = env!("CALMIX_COMMIT");
/// The target triple.
pub const TARGET: &str = env!("CALMIX_TARGET");

/// Returns the optional features that are compiled in.
pub fn features() -> impl Iterator<Item = &'static str> {
    env!("CALMIX_FEATURES").split(',').filter(|name| !name.is_empty())
}

/// Formats the optional features of a program in one line.
pub fn features_shown(features: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<&str> = features.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Returns the commit and the features of a program, as a run stores them.
pub fn build(features: impl Iterator<Item = &'static str>) -> Build {
    Build { commit: COMMIT.to_owned(), features: features.map(str::to_owned).collect() }
}

/// Returns the text of `calmix --version`; `-V` prints only the version.
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
