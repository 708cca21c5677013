//! The arguments of `calmix evaluate`.

use std::path::PathBuf;

use calmix_recipe::device::Device;
use clap::Args;

use crate::args::options::data::DataArgs;
use crate::args::options::source::LabelledArgs;

/// Evaluate the model of a run on its validation and test splits
///
/// Evaluates the result of the run or, before the run is finished, the EMA weights of its newest checkpoint. Prints error,
/// confidence gap, NLL and Brier score with confidence intervals, before and after calibration, and the ECE (15 bins) if
/// there are at least 1,000 samples. Writes no files. If the dataset has moved, name its new place with --data. --on
/// evaluates a finished run on other labelled images or vectors; classes are matched by name.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct EvaluateArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub on: OnArgs,
    /// Device: cpu, cuda, cuda:1, mps [default: that of the run]
    #[arg(long)]
    pub device: Option<Device>,
    /// Threads for the network and for reading images [default: one per core; that of the run for its own splits]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  run          folder of the run
  step         training steps of the model
  scaling      temperature, fitted_on and samples; null if no temperature could be fitted
  calibration  the calibrator of the confidence, as in model.json; null if there is none
  evaluations  one per split, as in events.jsonl: step, split, model, samples, edges, metrics,
               class_accuracy, bins (reliability), intervals, and calibrated (the same after
               calibration)

Fields of --json with --on:
  run, on, subset, calibration
  checked_against_training
               whether the samples could be compared with those of the training
  trained_on   how many of them the model was trained on; null if they could not be compared
  evaluation   as above
  sets         coverage and mean size of the 90% prediction sets; null without held-out labels
  answers      share of the samples that are answered at 90% precision, and the measured precision
  votes        with --votes: samples, entropy (of the votes), cross_entropy,
               calibrated_cross_entropy, correlation (Spearman's, of confidence and agreement)";

/// Options for labelled samples that do not belong to the run.
#[derive(Debug, Args)]
pub struct OnArgs {
    /// Evaluate on these labelled images instead: any dataset that `calmix prepare` reads. For a run on vectors: labelled
    /// vectors
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["data", "prepared"])]
    pub on: Option<PathBuf>,
    #[command(flatten)]
    pub reading: LabelledArgs,
    /// Subset of the samples of --on, such as test [default: all samples with a label]
    #[arg(long, value_name = "NAME", requires = "on")]
    pub subset: Option<String>,
    /// Compare with human votes: a CSV with a column of counts per class and a column `file`, or with rows in the order of
    /// the samples; or an .npy file such as CIFAR-10H's
    #[arg(long, value_name = "FILE", requires = "on")]
    pub votes: Option<PathBuf>,
}
