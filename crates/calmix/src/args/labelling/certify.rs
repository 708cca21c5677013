//! The arguments of `calmix certify`.

use std::path::PathBuf;

use clap::Args;

use crate::args::options::source::SourceArgs;

/// Have predicted labels audited, and certify that few of them are wrong
///
/// Freezes the labels that the model predicts for the unlabelled samples of the pool, draws rows at random among the most
/// confident ones, and writes a page on which you answer them without a prediction. Each time that you bring answers (--answers)
/// the bound is updated; you may stop at any time, and it holds whenever you stop. Once it shows that at most --error of the labels
/// are wrong, with 95% confidence, they are certified: first the surest rows, then larger shares of the pool.
///
/// Nothing is trained or calibrated meanwhile. A skipped row counts as wrong, and so does one on which two auditors differ. A pool or a
/// model that has changed needs a new certificate, in another folder.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct CertifyArgs {
    /// Folder of the run whose model labels
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Folder of images, or file or folder of vectors [default: the dataset of the run]
    #[arg(long, value_name = "DATA")]
    pub pool: Option<PathBuf>,
    /// Share of the certified labels that may be wrong
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub error: f64,
    /// Answered reviews, one per auditor and part
    #[arg(long, value_name = "REVIEW", num_args = 1..)]
    pub answers: Vec<PathBuf>,
    /// Rows to ask for at a time
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub count: u32,
    /// Folder for the certificate
    #[arg(long, value_name = "FOLDER", default_value = "certificate")]
    pub out: PathBuf,
    /// Labels that vectors of the pool already have: a CSV with ids
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Column, array or tensor that holds the vectors [default: embedding, vector, features, …]
    #[arg(long, value_name = "NAME")]
    pub vector_column: Option<String>,
    #[command(flatten)]
    pub reading: SourceArgs,
    /// Threads for the network and for reading images [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

const FIELDS: &str = "\
Examples:
  calmix certify runs/head-folder-1 --pool photos --error 0.05
  calmix certify runs/head-folder-1 --pool photos --answers review-1.csv
  calmix certify runs/head-folder-1 --pool photos --answers anna.csv ben.csv
  calmix verify certificate/certificate.json photos

Files in --out:
  certificate.json  the certificate, which `calmix verify` recomputes
  labels.csv        every sample of the pool with its predicted label and confidence
  review-1.html     the page for the answers; it saves review-1.csv, which can be filled in as well
  certificate.html  the certificate for a reader
  certified.csv     the certified labels, for `calmix label`; once there are some
  badge.svg         a badge, and badge.md the line of Markdown that shows it

Fields of --json:
  certificate     path of certificate.json
  review          path of the next rows to answer, or null
  page            path of the page for them, or null
  certified       path of certified.csv, or null
  pool_rows       unlabelled samples of the pool
  certified_rows  labels that are certified
  error           the limit
  new_answers     answers that this command has added
  shares          of each share: rows, answers, wrong, highest_error (the largest share of wrong
                  labels that is still possible), shown_at (answers after which the limit was
                  shown, or null) and is_certified";
