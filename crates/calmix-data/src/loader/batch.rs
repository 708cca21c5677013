//! What a step is trained on.

use super::corrupt::Skipped;

/// One step's samples: pixels are u8, row by row of the batch, each R, G, B from the top left (NHWC).
///
/// Where a process runs several shards of a step, their rows follow each other in the order the shards were named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The step.
    pub step: u64,
    /// The labelled rows.
    pub labelled: Labelled,
    /// The unlabelled rows.
    pub unlabelled: Unlabelled,
    /// Corrupt samples that others took the place of, by row.
    pub skipped: Vec<Skipped>,
}

/// Labelled samples, weakly augmented.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labelled {
    /// Which samples.
    pub ids: Vec<u64>,
    /// Which visit of each: with the id, it fixes the view.
    pub epochs: Vec<u64>,
    /// Their classes.
    pub labels: Vec<u32>,
    /// Their weak views.
    pub pixels: Vec<u8>,
}

/// Unlabelled samples in two views.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unlabelled {
    /// Which samples.
    pub ids: Vec<u64>,
    /// Which visit of each: with the id, it fixes the views.
    pub epochs: Vec<u64>,
    /// The place of each within its shard ([`Membership`](crate::order::Membership)).
    pub slots: Vec<u64>,
    /// Their weak views.
    pub weak: Vec<u8>,
    /// Their strong views.
    pub strong: Vec<u8>,
}
