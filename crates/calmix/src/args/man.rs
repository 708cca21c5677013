//! The arguments of `calmix man`.

use std::path::PathBuf;

use clap::Args;

/// Write manual pages
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct ManArgs {
    /// Folder to write calmix.1, calmix-train.1, … into
    pub(crate) folder: PathBuf,
}
