//! The data of a report: runs read from their folders and evaluated again. All pages, tables and plots are made from it.

mod assessment;
mod run;
mod top_predictions;

use std::path::Path;

use calmix_metrics::error::MetricsError;
use calmix_metrics::predictions::Predictions;
use serde::Serialize;

use crate::error::ReportError;
pub use assessment::{Assessment, LabelsOf, PRECISION};
pub use run::{EvaluatedRun, RunReport};
pub use top_predictions::{BeforeAfter, TopPredictions};

/// The format version of `report.json`. Later versions may add fields.
pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunsReport {
    pub format: u32,
    /// The version of calmix that made the report.
    pub calmix: String,
    /// The runs in the order given by the user.
    pub runs: Vec<RunReport>,
}

impl RunsReport {
    /// Reads runs, with their thumbnails if `images`.
    pub fn read(folders: &[impl AsRef<Path>], images: bool) -> Result<Self, ReportError> {
        let mut runs = Vec::new();
        for folder in folders {
            runs.push(RunReport::read(folder.as_ref(), images)?);
        }
        distinguish(&mut runs, folders);
        Ok(Self { format: FORMAT, calmix: env!("CARGO_PKG_VERSION").to_owned(), runs })
    }

    /// Makes a report on predictions of another program, for labels that its model was not trained on.
    ///
    /// # Errors
    /// If labels and logits differ in number, or a logit is not finite.
    pub fn of_predictions(name: &str, predictions: &Predictions) -> Result<Self, MetricsError> {
        let runs = vec![RunReport::of_predictions(name, predictions)?];
        Ok(Self { format: FORMAT, calmix: env!("CARGO_PKG_VERSION").to_owned(), runs })
    }

    /// Returns whether all runs are finished, so that the report will not change.
    pub fn is_final(&self) -> bool {
        self.runs.iter().all(|run| run.finished)
    }

    /// Formats the report as JSON with every digit.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        Ok(json)
    }
}

/// Renames runs with the same name in different folders to their paths.
fn distinguish(runs: &mut [RunReport], folders: &[impl AsRef<Path>]) {
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for (run, folder) in runs.iter_mut().zip(folders) {
        if names.iter().filter(|name| **name == run.name).count() > 1 {
            run.name = folder.as_ref().display().to_string();
        }
    }
}
