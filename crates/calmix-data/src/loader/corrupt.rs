//! The policy for corrupt samples.

use std::io;

use calmix_formats::error::FormatProblem;

use crate::error::DataError;

/// What to do about a corrupt sample: one whose bytes, as they were prepared, cannot be decoded.
///
/// A file that cannot be read at all, or that has changed since, is not a corrupt sample and always stops the loader: a run
/// that skipped it could not be reproduced from its recipe and dataset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnCorrupt {
    /// Another sample takes its place, and it is counted.
    ///
    /// In training that is the sample at the same position of the next epoch (or the one after, if that is
    /// corrupt too), in the views of that visit: a rule that depends on the position alone. An unlabelled
    /// sample is thus replaced by one of its own micro-batch. In evaluation nothing takes its place; the batch is
    /// shorter.
    Skip {
        /// The largest share of the samples read that may be corrupt. It is taken of at least 10,000 samples,
        /// so that a single corrupt one early in a run does not end it.
        share: f64,
    },
    /// The loader stops with an error that names the sample.
    Stop,
}

impl Default for OnCorrupt {
    /// One in a thousand may be skipped.
    fn default() -> Self {
        Self::Skip { share: 0.001 }
    }
}

/// The share is taken of at least this many samples.
const MIN_SEEN: u64 = 10_000;

/// How many samples were read, and how many of them were corrupt.
///
/// The tally decides only whether a run stops, never the bytes of a batch. A run that is resumed with its last tally
/// stops at the same step as an uninterrupted run.
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
    /// The row it would have had: labelled rows come first, unlabelled ones after them.
    pub row: usize,
    pub id: u64,
    /// What is wrong with it.
    pub problem: String,
}

impl Tally {
    /// Counts the samples of a step, of which some were skipped.
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

/// Whether the error is caused by the sample's bytes as they were prepared.
pub(super) fn is_corrupt(error: &DataError) -> bool {
    match error.problem() {
        Some(FormatProblem::Format(_) | FormatProblem::Limit(_)) => true,
        Some(FormatProblem::Io(error)) => {
            matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData)
        }
        _ => false,
    }
}
