//! The arguments of `calmix train`.

use std::path::PathBuf;

use clap::Args;

use super::process_args::ProcessArgs;
use super::recipe_args::RecipeArgs;
use super::source_args::SourceArgs;
use crate::input_shard::InputShard;

/// Train a model from a recipe and a dataset
///
/// For a folder of images, the default RECIPE is `folder` on a GPU. On a CPU it is `head-folder`, a head on a pretrained
/// backbone, if you have added one (`calmix weights`), and otherwise the small `cpu-folder`.
/// You can override every key of a recipe: in a FILE, by an environment variable (CALMIX_TRAIN__STEPS=2000), or with
/// --set; --set wins over variables, and variables win over the FILE.
///
/// A run is a folder. You can stop it with Ctrl-C or kill it at any time; `calmix resume` resumes it, bit-identical to an
/// uninterrupted run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TrainArgs {
    /// Built-in recipe; `calmix recipes` lists them
    pub recipe: Option<String>,
    /// Your own recipe in TOML; overrides keys of RECIPE, or of the recipe that it `extends`
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Folder of the run; it must be empty or not exist [default: runs/RECIPE-1, -2, …]
    // Not `--run`: torchrun refuses it as an ambiguous abbreviation of its own `--run-path`, wherever it stands.
    #[arg(long, value_name = "FOLDER")]
    pub run_dir: Option<PathBuf>,
    /// Seed for everything random and for the choice of the labels (train.seed and labels.seed)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Only compute the features of a frozen backbone, for later runs; several processes can share the work
    #[arg(long)]
    pub features_only: bool,
    /// With --features-only, the part to compute, such as 2/4 [default: the rank, under torchrun or srun]
    #[arg(long, value_name = "I/N", requires = "features_only")]
    pub shard: Option<InputShard>,
    #[command(flatten)]
    pub processes: ProcessArgs,
    #[command(flatten)]
    pub reading: SourceArgs,
    #[command(flatten)]
    pub overrides: RecipeArgs,
}

const EXAMPLES: &str = "\
Examples:
  calmix train --data photos
  calmix train cpu-fashion-mnist --data fashion-mnist
  calmix train cifar10 --data cifar-10-batches-bin --set labels.count=25 --seed 1
  calmix train --file mine.toml --run-dir runs/mine

Progress:
  loss   total loss on labels, pseudo-labels and mixed images
  used   share of the unlabelled images whose pseudo-labels are used
  gap    mean confidence minus accuracy, in points: positive if the model is over-confident
  wait   share of the time that the network waits for images";
