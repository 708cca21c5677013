//! The arguments of `calmix verify`.

use std::path::PathBuf;

use clap::Args;

/// Recompute a certificate from its files and the data
///
/// Checks, offline, that every sample of the pool is the one that was labelled, that the rows of the audit are those that the draw
/// gives, and that the answers show what the certificate claims. It reads labels.csv beside the certificate. A certificate is not a
/// signature: whoever can change its files can also write another one.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct VerifyArgs {
    /// The certificate, written by `calmix certify`
    #[arg(value_name = "CERTIFICATE")]
    pub certificate: PathBuf,
    /// The pool: folder of images, or file or folder of vectors
    #[arg(value_name = "DATA")]
    pub data: PathBuf,
    /// Column, array or tensor that holds the vectors [default: embedding, vector, features, …]
    #[arg(long, value_name = "NAME")]
    pub vector_column: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

const FIELDS: &str = "\
Examples:
  calmix verify certificate/certificate.json photos

Fields of --json:
  verified        whether everything is as the certificate says
  problems        what is not, in words
  claims          what the certificate claims, and what it does not
  certified_rows  labels that are certified
  pool_rows       samples of the pool";
