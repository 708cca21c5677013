//! The arguments of `calmix monitor`.

use std::path::PathBuf;

use clap::Args;

/// Watch outputs over days: estimated error, mix of classes, strange samples, alarm
///
/// Reads outputs of `calmix predict --out`, each a batch, in the order of the paths, and compares them with the reference of their run:
/// their sums in OUTPUT.predict.json suffice. The alarm may be looked at after every batch: while samples are like those of
/// training, it is ever raised with a probability of at most 1%. Ends with the code 10 if it is raised.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct MonitorArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Outputs of `calmix predict`, the oldest first
    #[arg(value_name = "OUTPUT", required = true)]
    pub outputs: Vec<PathBuf>,
    /// CSV of the labels of rows that were drawn at random, with a column of ids, for a bound on the error; outputs are then read, as
    /// CSV or Parquet
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// HTML page of plots to write; one of an earlier call is replaced
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  run, classes   the run and its classes
  alarm          the first batch after which the alarm was raised, from 1; null without an alarm
  changed        by then: rows if single rows are more or less unusual than those of the
                 reference, mean if their mean has moved
  not_compared   why samples were not compared; null if they were
  labelled       with --labels: labels, wrong, low and high (bounds on the share of errors, each
                 except with a probability of 5%, after however many labels)
  batches        for each output:
    output, rows   its path, and its rows with a prediction
    estimated_error
                   mean probability of being wrong: the error if the probabilities are calibrated
    mix            mean probability of each class
    verdict        that of `calmix predict` on this batch alone
    strange        share of rows stranger than 95% of the reference
    log10_capital, log10_highest
                   logarithm of the capital against the reference now, and the highest so far;
                   2 is the alarm";
