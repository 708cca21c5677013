//! The batch of one training step, and the pool that reuses the memory of batches.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use super::corrupt::SkippedSample;

/// The samples of one step: u8 pixels, row by row of the batch, each R, G, B from the top left (NHWC).
///
/// If a process runs several micro-batches per step, their rows follow each other in the order of
/// [`Training::micro_batches`].
///
/// [`Training::micro_batches`]: super::Training::micro_batches
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrainBatch {
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
    pub ids: Vec<u64>,
    /// The epoch of each visit, which determines the view together with the id.
    pub epochs: Vec<u64>,
    /// Their classes.
    pub labels: Vec<u32>,
    /// Their weak views.
    pub pixels: Vec<u8>,
}

/// Unlabelled samples in two views.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnlabelledViews {
    pub ids: Vec<u64>,
    /// The epoch of each visit, which determines the views together with the id.
    pub epochs: Vec<u64>,
    /// The slot of each sample within its micro-batch ([`Membership`](calmix_core::order::Membership)).
    pub slots: Vec<u64>,
    /// Their weak views.
    pub weak: Vec<u8>,
    /// Their strong views.
    pub strong: Vec<u8>,
}

/// A delivered batch; dropping it returns its memory to the loader.
///
/// A consumer may hold any number of batches without blocking the loader.
#[derive(Debug)]
pub struct PooledBatch<B: Default> {
    batch: B,
    free: Arc<BatchPool<B>>,
}

impl<B: Default> PooledBatch<B> {
    pub(super) fn new(batch: B, free: Arc<BatchPool<B>>) -> Self {
        Self { batch, free }
    }

    /// Takes the batch out; its memory does not return to the loader.
    pub fn into_inner(mut self) -> B {
        std::mem::take(&mut self.batch)
    }
}

impl<B: Default> Deref for PooledBatch<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.batch
    }
}

impl<B: Default> DerefMut for PooledBatch<B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.batch
    }
}

impl<B: Default> Drop for PooledBatch<B> {
    fn drop(&mut self) {
        self.free.put(std::mem::take(&mut self.batch));
    }
}

/// Returned batches, whose memory is reused.
#[derive(Debug)]
pub(super) struct BatchPool<B> {
    batches: Mutex<Vec<B>>,
    capacity: usize,
}

impl<B> BatchPool<B> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { batches: Mutex::new(Vec::new()), capacity }
    }

    pub(super) fn take(&self) -> Option<B> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put(&self, batch: B) {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        if batches.len() < self.capacity {
            batches.push(batch);
        }
    }
}
