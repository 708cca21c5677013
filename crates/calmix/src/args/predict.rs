//! The arguments of `calmix predict`.

use std::path::PathBuf;

use calmix_metrics::held_out::SetRule;
use calmix_recipe::device::Device;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::error::CliError;
use crate::model::options::ModelOptions;
use crate::process::input_shard::InputShard;

/// Predict images or vectors: label, calibrated confidence, prediction set, abstention
///
/// Reads the model of a finished run, not its dataset. Writes one row per image, in the order of the paths: as CSV to
/// standard output, or to a file with --out. Folders are read recursively, in the byte order of the paths; a WebDataset
/// shard (.tar) stands for the images in it. An image that cannot be read gets a row with the reason in the column
/// `error`.
///
/// A run that was trained on vectors predicts the vectors of one file or folder, one row each, in their order.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // one for each option
#[command(after_long_help = COLUMNS)]
pub struct PredictArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Images, folders, WebDataset shards; `-` reads paths from standard input, one per line. For a run on vectors: a file of
    /// vectors
    #[arg(value_name = "PATH", required_unless_present = "list")]
    pub paths: Vec<PathBuf>,
    /// File with more paths, one per line
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// File to write to; .csv, .jsonl for JSON, .parquet for a folder of Parquet files [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Format of the rows [default: by the name of the file, else csv]
    #[arg(long, value_enum)]
    pub format: Option<RowKind>,
    /// Rows per Parquet file; a kill loses at most one file of rows
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub part_rows: u32,
    /// Continue an interrupted file, or start it if it does not exist
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Probability with which a prediction set must contain the true class
    #[arg(long, default_value_t = ModelOptions::default().coverage)]
    pub coverage: f64,
    /// How prediction sets are formed: lac gives the smallest, aps adapts to the uncertainty of the image, lac-by-class has
    /// the coverage in each class
    #[arg(long, value_enum, default_value = "lac")]
    pub sets: SetKind,
    /// Adapt to another mix of classes: `estimate` from these samples, which are then read twice, or a CSV file with the
    /// columns class and share
    #[arg(long, value_name = "estimate|FILE")]
    pub mix: Option<PathBuf>,
    /// Share of the answers that must be right; the model abstains from less confident ones
    #[arg(long, default_value_t = ModelOptions::default().precision)]
    pub precision: f64,
    /// Also write the probabilities of all classes
    #[arg(long)]
    pub probabilities: bool,
    /// Also write the features of each image: the vector before the last layer, or the one below a head; to Parquet or JSON
    #[arg(long)]
    pub features: bool,
    /// Also write how usual each row is among the samples of training: a p-value, below 0.05 for the strangest twentieth of them
    #[arg(long)]
    pub unusual: bool,
    /// Predict one of N shards of the images, such as 2/4, into FILE-2-of-4; the hash of its path puts a file into a
    /// shard, a .tar with all its images [default: the rank, under torchrun or srun]. A shard of vectors is a range of rows
    #[arg(long, value_name = "I/N")]
    pub shard: Option<InputShard>,
    /// Column, array or tensor that holds the vectors [default: embedding, vector, features, …]
    #[arg(long, value_name = "NAME")]
    pub vector_column: Option<String>,
    /// Column that holds the ids of vectors [default: id, path, file, …]
    #[arg(long, value_name = "NAME")]
    pub path_column: Option<String>,
    /// Device: cpu, cuda, cuda:1 [default: cpu]
    #[arg(long)]
    pub device: Option<Device>,
    /// Threads for the network and for reading images [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
    /// Images in memory at a time, fewer if they are large; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch: u32,
    /// Print a summary as one JSON document; the rows are in the file of --out
    #[arg(long, requires = "out")]
    pub json: bool,
}

/// The values of `--sets`, one for each rule of prediction sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SetKind {
    Lac,
    Aps,
    LacByClass,
}

/// Refuses a coverage or a precision that is not between 0 and 1.
pub fn check_shares(coverage: f64, precision: f64) -> Result<(), CliError> {
    for (name, value) in [("--coverage", coverage), ("--precision", precision)] {
        if !(value > 0.0 && value < 1.0) {
            return Err(CliError::invalid(format!("{name} is {value}, which is not between 0 and 1")));
        }
    }
    Ok(())
}

impl SetKind {
    /// Returns the rule of this name.
    pub fn rule(self) -> SetRule {
        match self {
            Self::Lac => SetRule::Lac,
            Self::Aps => SetRule::Aps,
            Self::LacByClass => SetRule::LacByClass,
        }
    }
}

const COLUMNS: &str = "\
Columns:
  path        path of the image; bytes that are not UTF-8, control characters and \\ are written
              \\xNN. For vectors the column is `id`: the id of the row, or else its number, from 0
  label       the most probable class
  confidence  its calibrated probability
  margin      its probability minus that of the second class
  set         prediction set that contains the true class with probability at least --coverage
              (conformal), most probable class first; separated by | in CSV, a list in JSON and
              Parquet
  abstain     true if the confidence before calibration is below the threshold for --precision
  error       why the image or vector could not be read; the other columns are then empty
  unusual     with --unusual, the share of training samples that are at least as strange: small
              for samples unlike those of training
  p(CLASS)    with --probabilities, the calibrated probability of each class; in JSON and Parquet
              the list `probabilities`, in the order of `classes` in model.json and in
              FILE.predict.json
  features    with --features, the vector before the last layer, a list of 32-bit numbers

`set` and `abstain` are based on labels held out from training, and are empty without such labels.
Both guarantees assume that the images are like the held-out ones; the precision guarantee holds
with a probability of 90%. --sets lac-by-class needs 9 held-out labels per class for a coverage of
90%; a class with fewer is in every set. See docs/concepts/guarantees.md.

With --mix, probabilities, sets (not those of aps) and abstention are those of another mix of
classes. Estimated shares are used only if they differ from those of the held-out labels by more
than both are uncertain, and the samples are otherwise like those of training; sets and abstention
are then estimates, too.

Fields of --json:
  run          folder of the run
  out, format  where the rows are, and in which format
  finished     false if a signal stopped it; --resume continues
  rows         rows in the output
  rows_before  those of them that were there before, with --resume
  unread       rows with an error, of those that were added
  abstained    rows from which the model abstains, of those that were added
  mix          null, or the `shares` of the classes that predictions are adapted to, `source`
               (`known` or `estimated`) and 95% `intervals` of estimated shares
  verdict      what the guarantees are worth for all rows of the output: `applies`, `mix-differs`,
               `void` or `not-checked`, with the numbers behind it";

/// The formats of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// Comma-separated, with a header line
    #[default]
    Csv,
    /// One JSON object per line
    Jsonl,
    /// A folder of Parquet files
    Parquet,
}
