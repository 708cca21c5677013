//! Batches whose memory the loader reuses.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// A delivered batch; dropping it returns its memory to the loader.
///
/// A consumer may hold many batches: that takes their memory and never blocks the loader.
#[derive(Debug)]
pub struct PooledBatch<B: Default> {
    batch: B,
    free: Arc<BatchPool<B>>,
}

impl<B: Default> PooledBatch<B> {
    pub(super) fn new(batch: B, free: Arc<BatchPool<B>>) -> Self {
        Self { batch, free }
    }

    /// Takes the batch; its memory does not return to the loader.
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

/// Returned batches whose memory is reused.
#[derive(Debug)]
pub(super) struct BatchPool<B> {
    batches: Mutex<Vec<B>>,
    most: usize,
}

impl<B> BatchPool<B> {
    pub(super) fn new(most: usize) -> Self {
        Self { batches: Mutex::new(Vec::new()), most }
    }

    pub(super) fn take(&self) -> Option<B> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put(&self, batch: B) {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        if batches.len() < self.most {
            batches.push(batch);
        }
    }
}
