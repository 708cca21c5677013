//! Batches whose memory goes back to the loader.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// A batch in the consumer's hands: dropping it gives its memory back to the loader.
///
/// Holding many costs the memory of many, and never blocks the loader.
#[derive(Debug)]
pub struct Loan<B: Default> {
    batch: B,
    spares: Arc<Spares<B>>,
}

impl<B: Default> Loan<B> {
    pub(super) fn new(batch: B, spares: Arc<Spares<B>>) -> Self {
        Self { batch, spares }
    }

    /// Keeps the batch; its memory does not go back.
    pub fn keep(mut self) -> B {
        std::mem::take(&mut self.batch)
    }
}

impl<B: Default> Deref for Loan<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.batch
    }
}

impl<B: Default> DerefMut for Loan<B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.batch
    }
}

impl<B: Default> Drop for Loan<B> {
    fn drop(&mut self) {
        self.spares.put(std::mem::take(&mut self.batch));
    }
}

/// Memory of batches that came back, to be used again.
#[derive(Debug)]
pub(super) struct Spares<B> {
    batches: Mutex<Vec<B>>,
    most: usize,
}

impl<B> Spares<B> {
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
