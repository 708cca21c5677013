//! How a run ended.

use crate::events::Finished;

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It finished.
    Finished(Finished),
    /// It had finished before; nothing was done.
    AlreadyFinished(Finished),
    /// It stopped on request, and can be resumed.
    Stopped {
        /// The number of steps so far.
        step: u64,
    },
}
