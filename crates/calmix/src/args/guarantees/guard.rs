//! The arguments of `calmix guard`.

use std::path::PathBuf;

use clap::Args;

use crate::args::predict::{RowKind, SetKind};
use crate::model::options::ModelOptions;

/// Add prediction sets and abstention to the probabilities of any model
///
/// Reads the probabilities that a model gave to samples, and the labels of some of them, which the model must not have been trained or
/// calibrated on. These labels give the guarantees, by the code that the models of calmix use. Writes the other rows with
/// the columns of `calmix predict`, as CSV to standard output or to a file with --out, and prints how good the
/// probabilities of the labelled rows are.
#[derive(Debug, Args)]
#[command(after_long_help = COLUMNS)]
pub struct GuardArgs {
    /// CSV, Parquet, or a folder of Parquet files, with probabilities
    #[arg(value_name = "PREDICTIONS")]
    pub predictions: PathBuf,
    /// CSV of the labels of some rows, with a column of ids
    #[arg(long, value_name = "FILE")]
    pub labels: PathBuf,
    /// File to write to; .csv, .jsonl for JSON, .parquet for a folder of Parquet files [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Format of the rows [default: by the name of the file, else csv]
    #[arg(long, value_enum)]
    pub format: Option<RowKind>,
    /// Probability with which a prediction set must contain the true class
    #[arg(long, default_value_t = ModelOptions::default().coverage)]
    pub coverage: f64,
    /// How prediction sets are formed: lac gives the smallest, aps adapts to the uncertainty of the sample, lac-by-class has
    /// the coverage in each class
    #[arg(long, value_enum, default_value = "lac")]
    pub sets: SetKind,
    /// Share of the answers that must be right; repeat it to compare several, whose guarantees then hold together. The column
    /// `abstain` is for the first
    #[arg(long, default_values_t = [ModelOptions::default().precision])]
    pub precision: Vec<f64>,
    /// Classes, comma-separated: the names of their columns, or the order of a list `probabilities`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub classes: Vec<String>,
    /// Column that holds the ids, in both files [default: id, path, file, …]
    #[arg(long, value_name = "NAME")]
    pub path_column: Option<String>,
    /// Column of --labels that holds the labels [default: label, class, …]
    #[arg(long, value_name = "NAME")]
    pub label_column: Option<String>,
    /// HTML page to write about the labelled rows: reliability diagram, errors, confusions
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print a summary as one JSON document; the rows are in the file of --out
    #[arg(long, requires = "out")]
    pub json: bool,
}

const COLUMNS: &str = "\
Input: a column `id` or `path`, and a column per class, called p(CLASS) as `calmix predict
--probabilities` writes it, or CLASS if there are no other columns; in Parquet also a list
`probabilities`, whose order --classes names. A row without numbers is left without a prediction.

The columns of the output are those of `calmix predict`: id, label, confidence, margin, set,
abstain, error. A column `group` of --labels counts labels of one group as one observation;
labels that its column `drawn` calls chosen are not used.

The guarantees hold for rows like the labelled ones, that of the precision with a probability of
90%. See docs/guides/guard.md.

Fields of --json:
  predictions, out
               the files
  labels, groups
               labels that were used, and groups that they are from
  rows         rows of the output
  unread       those without a prediction
  abstained    those that the model abstains from
  error, low, high
               share of wrong predictions among the labels, with its 95% confidence interval
  confidence_gap
               their mean confidence minus their accuracy
  nll          their mean negative log-likelihood
  mean_set_size
               mean number of classes in the sets of the output
  precisions   for each --precision: precision, confidence (threshold; null if none reaches it),
               answered (share of the rows of the output)
  missing      what the labels are too few for";
