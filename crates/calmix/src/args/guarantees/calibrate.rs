//! The arguments of `calmix calibrate`.

use std::path::PathBuf;

use calmix_recipe::device::Device;
use clap::Args;

use crate::args::options::source::LabelledArgs;

/// Refit the calibration of a finished run on new labels
///
/// Runs the model on the labelled images of a folder, or on labelled vectors, and fits the calibrator that turns its outputs into confidences: a
/// temperature with at least 10 labels, vector scaling with at least 100 or an isotonic calibrator with at least 1,000 if
/// its cross-validated NLL is clearly lower. Nothing is trained. Writes the calibrator, the origin of its labels, and
/// what prediction sets and abstention need into the run's model.json. Prints the metrics of these labels before and
/// after; each label is evaluated by a fit without it.
///
/// Classes are matched by name. Images or vectors that the model was trained on, labelled or not, are left out: the model is
/// over-confident on them. The previous model.json is kept as model.previous.json; rename it to undo the calibration.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct CalibrateArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Labelled images: one folder per class, a labels.csv, WebDataset shards, or Parquet files. For a run on vectors: labelled vectors
    #[arg(long, value_name = "FOLDER")]
    pub on: PathBuf,
    #[command(flatten)]
    pub reading: LabelledArgs,
    /// Subset of the samples, such as val; required if several subsets have labels
    #[arg(long, value_name = "NAME")]
    pub subset: Option<String>,
    /// Device: cpu, cuda, cuda:1, mps [default: the fastest one]
    #[arg(long)]
    pub device: Option<Device>,
    /// Threads for the network and for reading images [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  run          folder of the run
  skipped      corrupt samples that were left out
  checked_against_training
               whether the samples could be compared with those of the training
  trained_on   samples that were left out because the model was trained on them; null if they
               could not be compared
  missing_classes
               classes of the model that have no label here
  calibration  as in model.json: calibrator, fitted_on, samples, rule, tried, changed_labels,
               origin, raw and calibrated (metrics on these labels)";
