//! Counts of samples that were read and of those that were corrupt.

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
