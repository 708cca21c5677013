//! What a page needs to learn from its answers: the vectors of the pool that the head is fitted to.

use serde::Serialize;

pub(super) const SCRIPT: &str = include_str!("live.js");

/// The digest of the script in the policy. A test computes it.
pub(super) const SOURCE: &str = "'sha256-pOSFvTEphpr+nVkyA2fbayTvWGmFXvcecNPIpgV/iVg='";

/// The pool that the head is fitted to.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LivePool<'a> {
    /// The ids of the samples, ascending.
    pub ids: &'a [u64],
    /// The numbers of a vector.
    pub width: usize,
    /// A vector per sample, one after the other.
    #[serde(skip)]
    pub vectors: &'a [f32],
    /// The labels of the data: the row of the vector, the index of the class in those of the page, and whether the label was chosen.
    pub labels: &'a [(usize, u32, bool)],
    /// `network.folds`.
    pub folds: usize,
    /// The halves of the seed of training, the lower first: a number of JavaScript cannot hold both.
    pub seed: [u32; 2],
}

impl LivePool<'_> {
    /// Returns the vectors as the program reads them.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.vectors.iter().flat_map(|number| number.to_le_bytes()).collect()
    }
}
