//! The arguments of `calmix compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Compare finished runs: settings side by side, with paired differences over seeds
///
/// Runs that differ only in their seeds form one setting. Each setting is compared with the setting of --against, or by
/// default with the plain base algorithm on the same data, otherwise with the first setting there: mean difference over
/// runs with the same seeds, Student's confidence interval, and p-values with Holm's correction. Two runs per setting are
/// too few for a conclusion. If the setting is one of the paper's, the paper's result is shown next to it. For runs on
/// frozen features the tables show the recipe's own head, whichever head the run kept, and the head that was trained on
/// the labels alone. Changes no files.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct CompareArgs {
    /// Runs, or folders of runs, such as the folder of a sweep
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Compare every setting with the setting of this run
    #[arg(long, value_name = "RUN")]
    pub(crate) against: Option<PathBuf>,
    /// Format of the tables
    #[arg(long, value_enum, default_value_t = TableFormat::Markdown, conflicts_with = "json")]
    pub(crate) format: TableFormat,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// The format of printed tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For reading and web pages
    Markdown,
    /// For LaTeX documents; needs booktabs and multirow
    Latex,
    /// One line per setting and metric, for spreadsheets and scripts
    Csv,
}

const FIELDS: &str = "\
Examples:
  calmix compare runs
  calmix compare sweeps/table-1 --format latex > table-1.tex
  calmix compare runs/a-1 runs/a-2 runs/a-3 runs/b-1 runs/b-2 runs/b-3 --against runs/a-1

Fields of --json, shares between 0 and 1:
  columns      dataset, labels (kept per class), on (the split)
  rows         names of the methods
  cells        column, row, seeds, ece (15 bins), ece_10, error: n, mean, deviation; measures (nll,
               brier, debiased, calibrated-ece, …: the same); head (recipe or labels-alone; null for
               whole networks); paper (per cent; null unless the setting is the paper's),
               chosen_on_test
  differences  column, row, against, measure, pairs, mean, interval (n, estimate, low, high, level),
               p_value, p_holm, outcome: lower, higher, not-told-apart, too-few or no-scatter
  tests        number of tests in Holm's correction
  notes        what was left out, and why";
