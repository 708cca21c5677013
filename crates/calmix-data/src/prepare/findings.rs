//! The file `report.json` beside the table: what the scan of a dataset found.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Report;
use crate::error::DataError;

/// The maximum size of a summary, in bytes: enough for a hundred thousand classes.
const MAX_SUMMARY_BYTES: u64 = 32 << 20;

/// The findings about a dataset that concern the user, as sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Findings {
    /// The number of files left out; 0 in summaries that list all of them.
    #[serde(default)]
    left_out: u64,
    /// The first of these files, with the reasons.
    pub unreadable: Vec<String>,
    /// Probable mistakes.
    pub warnings: Vec<String>,
}

impl Findings {
    /// The name of the file beside the table.
    pub const FILE: &str = "report.json";

    /// Reads the findings of the dataset in the folder `prepared`.
    ///
    /// # Errors
    /// If there is no summary, or it cannot be read.
    pub fn read(prepared: &Path) -> Result<Self, DataError> {
        read_json(&prepared.join(Self::FILE), MAX_SUMMARY_BYTES)
    }

    /// Returns the number of files left out.
    pub fn left_out(&self) -> u64 {
        self.left_out.max(self.unreadable.len() as u64)
    }
}

impl From<&Report> for Findings {
    fn from(report: &Report) -> Self {
        Self {
            left_out: report.left_out,
            unreadable: report.unreadable.iter().map(ToString::to_string).collect(),
            warnings: report.warnings.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Writes a file of a prepared dataset that readers cannot see yet.
pub(super) fn write_json(path: &Path, what: &impl Serialize) -> Result<(), DataError> {
    let written = serde_json::to_vec_pretty(what).map_err(io::Error::from).and_then(|mut bytes| {
        bytes.push(b'\n');
        let mut file = File::create_new(path)?;
        file.write_all(&bytes)?;
        file.sync_all()
    });
    written.map_err(|error| DataError::new(path, error))
}

/// Reads a file of a prepared dataset, which is untrusted input.
pub(super) fn read_json<T: for<'de> Deserialize<'de>>(path: &Path, longest: u64) -> Result<T, DataError> {
    let cannot = |error| DataError::new(path, error);
    // Opening a pipe would block until another process writes to it.
    let found = std::fs::metadata(path).map_err(cannot)?;
    if !found.is_file() {
        return Err(DataError::content(path, "not a regular file"));
    }
    if found.len() > longest {
        let problem = format!("{} bytes, expected at most {longest}", found.len());
        return Err(DataError::limit(path, problem).hint("prepare the dataset again"));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(longest).read_to_end(&mut bytes)).map_err(cannot)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| DataError::format(path, error.to_string()).hint("prepare the dataset again"))
}
