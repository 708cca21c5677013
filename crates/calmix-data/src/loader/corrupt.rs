//! The policy for corrupt samples.

use std::io;

use calmix_formats::error::FormatProblem;

use crate::error::DataError;

/// The policy for corrupt samples, whose prepared bytes cannot be decoded.
///
/// A file that is unreadable or has changed is not a corrupt sample and always stops the loader: a run that skipped it could
/// not be reproduced from its recipe and dataset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnCorrupt {
    /// Replaces the sample by another, and counts it.
    ///
    /// In training, the replacement is the sample at the same position of the next epoch (or a later one, if that is corrupt
    /// too), in the views of that visit, so it depends on the position alone. An unlabelled sample is thus replaced by one
    /// of its own micro-batch. In evaluation there is no replacement; the batch is shorter.
    Skip {
        /// The largest share of corrupt samples among those read, of which at least 10,000 are assumed, so that a single
        /// corrupt sample early in a run does not end it.
        share: f64,
    },
    /// Stops with an error that names the sample.
    Stop,
}

impl Default for OnCorrupt {
    /// Allows one corrupt sample in a thousand.
    fn default() -> Self {
        Self::Skip { share: 0.001 }
    }
}

/// The share is relative to at least this many samples.
const MIN_SEEN: u64 = 10_000;

/// The number of samples read, and of corrupt ones among them.
///
/// The tally only decides whether a run stops, never the bytes of a batch. A run resumed with its last tally stops at the
/// same step as an uninterrupted run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Samples read, with repetition.
    pub seen: u64,
    /// Corrupt ones among them.
    pub skipped: u64,
}

/// A corrupt sample that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedSample {
    /// The row that it would have had; labelled rows come before unlabelled ones.
    pub row: usize,
    pub id: u64,
    /// What is wrong with it.
    pub problem: String,
}

impl Tally {
    /// Adds the counts of a step.
    ///
    /// # Errors
    /// If more samples are corrupt than `corrupt` allows.
    pub fn add(
        &mut self,
        seen: usize,
        skipped: &[SkippedSample],
        corrupt: OnCorrupt,
    ) -> Result<(), DataError> {
        self.seen += seen as u64;
        self.skipped += skipped.len() as u64;
        match (corrupt, skipped.last()) {
            (OnCorrupt::Skip { share }, Some(last))
                if self.skipped as f64 > share * self.seen.max(MIN_SEEN) as f64 =>
            {
                Err(DataError::TooManyCorrupt {
                    id: last.id,
                    problem: last.problem.clone(),
                    seen: self.seen,
                    skipped: self.skipped,
                })
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether the error is caused by the prepared bytes of the sample.
pub(super) fn is_corrupt(error: &DataError) -> bool {
    match error.problem() {
        Some(FormatProblem::Format(_) | FormatProblem::Limit(_)) => true,
        Some(FormatProblem::Io(error)) => {
            matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData)
        }
        _ => false,
    }
}
