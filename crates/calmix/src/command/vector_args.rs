//! `--labels` and `--vector-column`: how labelled vectors of `--on` are read.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::error::CliError;

/// Options for labelled vectors that do not belong to the run.
#[derive(Debug, Args)]
pub struct VectorArgs {
    /// For a run on vectors, the labels of those of --on: a CSV with a column of labels and, unless its lines are in the order
    /// of the vectors, one of ids; or an .npy of whole numbers, -1 for no label [default: those in the file of the vectors]
    #[arg(long, value_name = "FILE", requires = "on")]
    pub labels: Option<PathBuf>,
    /// For a run on vectors, the column, array or tensor that holds those of --on [default: embedding, vector, features, …]
    #[arg(long, value_name = "NAME", requires = "on")]
    pub vector_column: Option<String>,
}

impl VectorArgs {
    /// Refuses the options for a run on images.
    ///
    /// # Errors
    /// If one of them is given.
    pub fn refuse_for_images(&self) -> Result<()> {
        let option = match (&self.labels, &self.vector_column) {
            (Some(_), _) => "--labels",
            (_, Some(_)) => "--vector-column",
            _ => return Ok(()),
        };
        let message = format!("{option} is for runs on vectors, but this run was trained on images");
        Err(CliError::invalid(message)
            .hint(format!("leave {option} out; labels of images are in their folder"))
            .into())
    }
}
