//! The arguments of `calmix resume`.

use std::path::PathBuf;

use clap::Args;

use crate::args::options::recipe::{ProcessArgs, RecipeArgs};

/// Resume a stopped or killed run; bit-identical to an uninterrupted run
///
/// Settings that affect what the run learns cannot change. Others can: --device, --threads, --data if the dataset has moved,
/// --set checkpoint.every=100. The run uses the recipe in its folder and ignores variables such as CALMIX_TRAIN__STEPS.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    #[command(flatten)]
    pub processes: ProcessArgs,
    #[command(flatten)]
    pub recipe: RecipeArgs,
}
