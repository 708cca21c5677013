//! What this program was compiled from and with; a run records it.

use calmix::process::version::COMMIT;
use calmix::run::run::Build;

/// The optional features that are compiled in.
pub(crate) fn features() -> impl Iterator<Item = &'static str> {
    let all = [
        ("cloud", cfg!(feature = "cloud")),
        ("https", cfg!(feature = "https")),
        ("jemalloc", cfg!(feature = "jemalloc")),
        ("nccl", cfg!(feature = "nccl")),
        ("raster", cfg!(feature = "raster")),
    ];
    all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name)
}

/// The optional features in a line.
pub(crate) fn features_shown() -> String {
    let names: Vec<&str> = features().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Commit and features, as a run records them.
pub(crate) fn build() -> Build {
    Build { commit: COMMIT.to_owned(), features: features().map(str::to_owned).collect() }
}
