//! The arguments of `calmix sweep`.

use std::path::PathBuf;

use clap::Args;

use crate::args::options::recipe::RecipeArgs;

/// Train every run of a grid; restartable at any time, by any number of workers
///
/// SWEEP is a file, or table-1, table-2, table-3, table-4 or figure-1 of the paper. Start the same command again to
/// continue after a kill, or several times at once, on machines that share the folder, to train in parallel: each worker
/// claims the next free run, and the run of a worker that dies becomes free again. Options override keys of all runs.
///
/// At the end, the folder of the sweep has summary.json and summary.csv; `calmix compare` shows its settings side by side.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SweepArgs {
    /// Sweep file, or the name of a built-in sweep
    pub sweep: PathBuf,
    /// Folder of the sweep [default: sweeps/SWEEP]
    #[arg(long, value_name = "FOLDER")]
    pub sweep_dir: Option<PathBuf>,
    /// Folder that holds the datasets in subfolders: cifar10, cifar100, svhn, stl10, fashion-mnist, …
    #[arg(long, value_name = "FOLDER", conflicts_with = "data")]
    pub datasets: Option<PathBuf>,
    /// Check and list the runs without training
    #[arg(long)]
    pub dry_run: bool,
    /// Retry failed runs
    #[arg(long)]
    pub retry: bool,
    /// Wait until the runs of all other workers are done, and take over those of workers that die
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub overrides: RecipeArgs,
}

const EXAMPLES: &str = "\
Examples:
  calmix sweep mine.toml --data fashion-mnist --threads 1
  calmix sweep table-1 --datasets datasets --dry-run
  sbatch --array=1-8 --wrap 'calmix sweep table-1 --datasets datasets --sweep-dir shared/table-1'

A sweep file:
  [[grid]]
  recipe = \"cpu-fashion-mnist\"
  seeds = [1, 2, 3]
  train.steps = 500
  method.base = [\"fixmatch\", \"softmatch\"]
  method.mixup.pairing = [\"none\", \"calibratemix\"]";
