//! The batch of one training step.

use super::corrupt::SkippedSample;

/// One step's samples: pixels are u8, row by row of the batch, each R, G, B from the top left (NHWC).
///
/// If a process runs several shards of a step, their rows follow each other in the order of [`Training::shards`].
///
/// [`Training::shards`]: super::Training::shards
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrainBatch {
    /// The step.
    pub step: u64,
    /// The labelled rows.
    pub labelled: LabelledViews,
    /// The unlabelled rows.
    pub unlabelled: UnlabelledViews,
    /// Corrupt samples that were replaced, by row.
    pub skipped: Vec<SkippedSample>,
}

/// Labelled samples, weakly augmented.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelledViews {
    /// Which samples.
    pub ids: Vec<u64>,
    /// The epoch of each visit; with the id, it determines the view.
    pub epochs: Vec<u64>,
    /// Their classes.
    pub labels: Vec<u32>,
    /// Their weak views.
    pub pixels: Vec<u8>,
}

/// Unlabelled samples in two views.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnlabelledViews {
    /// Which samples.
    pub ids: Vec<u64>,
    /// The epoch of each visit; with the id, it determines the views.
    pub epochs: Vec<u64>,
    /// The slot of each within its shard ([`Membership`](calmix_core::order::Membership)).
    pub slots: Vec<u64>,
    /// Their weak views.
    pub weak: Vec<u8>,
    /// Their strong views.
    pub strong: Vec<u8>,
}
