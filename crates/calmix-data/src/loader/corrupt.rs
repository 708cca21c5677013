//! What happens when a sample turns out to be corrupt.

use std::io;

use super::error::LoadError;
use crate::error::Problem;

/// What to do about a corrupt sample: one whose bytes are not what they should be.
///
/// A file that cannot be read at all is no corrupt sample: the storage may be back in a minute, and a run that
/// leaves out what is missing for a minute cannot be repeated. That always stops the loader.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnCorrupt {
    /// Another sample takes its place, and it is counted.
    ///
    /// In training that is the sample at the same place of the next epoch (or the one after, where that is
    /// corrupt too), seen as it will be seen there: a rule that depends on the position alone. An unlabelled
    /// sample is so replaced by one of its own shard. In evaluation nothing takes its place; the batch is
    /// shorter.
    Skip {
        /// The largest share of the samples seen that may be corrupt. One in a thousand of 10,000 is always
        /// allowed, so that a single one early in a run does not end it.
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
const FEWEST_SEEN: u64 = 10_000;

/// How many samples were seen, and how many of them were corrupt.
///
/// The bytes of batches never depend on it, only whether a run gives up. A run that is resumed with the tally it
/// was stopped at gives up where the uninterrupted run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Samples seen, with repetition.
    pub seen: u64,
    /// Corrupt ones among them.
    pub skipped: u64,
}

/// A corrupt sample that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The row it would have had: labelled rows come first, unlabelled ones after them.
    pub row: usize,
    /// The sample.
    pub id: u64,
    /// What is wrong with it.
    pub problem: String,
}

impl Tally {
    /// Counts the samples of a step, of which some were skipped.
    ///
    /// # Errors
    /// If that makes more than may be.
    pub fn add(&mut self, seen: usize, skipped: &[Skipped], corrupt: OnCorrupt) -> Result<(), LoadError> {
        self.seen += seen as u64;
        self.skipped += skipped.len() as u64;
        match (corrupt, skipped.last()) {
            (OnCorrupt::Skip { share }, Some(last))
                if self.skipped as f64 > share * self.seen.max(FEWEST_SEEN) as f64 =>
            {
                Err(LoadError::TooManyCorrupt { id: last.id, problem: last.problem.clone(), tally: *self })
            }
            _ => Ok(()),
        }
    }
}

/// Whether this is the fault of the sample's bytes.
pub(super) fn is_corrupt(error: &LoadError) -> bool {
    let problem = match error {
        LoadError::Sample { error, .. } => &error.problem,
        LoadError::View { problem, .. } => problem,
        _ => return false,
    };
    match problem {
        Problem::Format(_) | Problem::Limit(_) | Problem::Changed(_) => true,
        Problem::Io(error) => {
            matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData)
        }
        Problem::Content(_) => false,
    }
}
