//! The evaluation loader: every sample once, in order, without augmentation.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::batch::PooledBatch;
use super::corrupt::{OnCorrupt, SkippedSample, Tally, is_corrupt};
use super::sample_ids::SampleIds;
use super::streams::SampleStream;
use super::views::Views;
use super::worker_pool::{Job, WorkerPool, check_size};
use super::{Warn, Workers};
use crate::augment::Scratch;
use crate::error::DataError;

/// An evaluation batch: ids, labels if any, and views without randomness (u8, NHWC).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvalBatch {
    pub ids: Vec<u64>,
    /// Their classes.
    pub labels: Vec<Option<u32>>,
    /// Their views.
    pub pixels: Vec<u8>,
    /// Corrupt samples that were left out.
    pub skipped: Vec<SkippedSample>,
}

/// Delivers samples in the given order, without randomness; the last batch may be short.
///
/// The iterator ends after the last sample, or after the first error.
#[derive(Debug)]
pub struct EvalLoader {
    pool: WorkerPool<EvalJob>,
    bytes: usize,
}

impl EvalLoader {
    /// Starts the workers on the first batches; a batch of zero counts as one.
    ///
    /// # Errors
    /// If a batch does not fit into memory, or the system refuses a thread.
    pub fn new(
        views: Arc<dyn Views>,
        SampleStream { ids, batch }: SampleStream,
        corrupt: OnCorrupt,
        workers: Workers,
    ) -> Result<Self, DataError> {
        let batch = u64::from(batch.max(1));
        let bytes = views.bytes();
        check_size(batch, bytes)?;
        let job = EvalJob { views, ids, batch, corrupt };
        Ok(Self { pool: WorkerPool::start(job, workers, Tally::default())?, bytes })
    }

    /// Sets the callback for warnings, as [`Loader::warning`](super::Loader::warning) does.
    #[must_use]
    pub fn warning(self, warn: Warn) -> Self {
        self.pool.set_warn(warn);
        self
    }

    /// Returns the next batch, as [`Loader::next_unless`](super::Loader::next_unless) does.
    pub fn next_unless(
        &mut self,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Result<PooledBatch<EvalBatch>, DataError>> {
        let mut batch = self.pool.next(stop)?;
        if let Ok(batch) = &mut batch {
            batch.close_gaps(self.bytes);
        }
        Some(batch)
    }
}

impl Iterator for EvalLoader {
    type Item = Result<PooledBatch<EvalBatch>, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_unless(&mut || false)
    }
}

impl EvalBatch {
    /// Removes the rows that were skipped.
    fn close_gaps(&mut self, bytes: usize) {
        if self.skipped.is_empty() {
            return;
        }
        let mut kept = 0;
        for row in 0..self.ids.len() {
            if self.skipped.iter().all(|skipped| skipped.row != row) {
                self.ids[kept] = self.ids[row];
                self.labels[kept] = self.labels[row];
                self.pixels.copy_within(row * bytes..(row + 1) * bytes, kept * bytes);
                kept += 1;
            }
        }
        self.ids.truncate(kept);
        self.labels.truncate(kept);
        self.pixels.truncate(kept * bytes);
    }
}

struct EvalJob {
    views: Arc<dyn Views>,
    ids: SampleIds,
    batch: u64,
    corrupt: OnCorrupt,
}

impl EvalJob {
    fn make_views(
        &self,
        id: u64,
        scratch: &mut Scratch,
        pixels: &mut [u8],
    ) -> Result<Option<u32>, DataError> {
        let label = self.views.label(id)?;
        self.views.evaluation(id, scratch, pixels)?;
        Ok(label)
    }
}

impl Job for EvalJob {
    type Batch = EvalBatch;
    type Made = (u64, Result<Option<u32>, String>);
    type WorkerState = Scratch;

    fn steps(&self) -> Range<u64> {
        0..self.ids.len().div_ceil(self.batch)
    }

    fn rows(&self, step: u64) -> usize {
        (self.ids.len() - step * self.batch).min(self.batch) as usize
    }

    fn bytes(&self) -> usize {
        self.views.bytes()
    }

    fn worker_state(&self) -> Scratch {
        Scratch::default()
    }

    fn open(&self, step: u64, batch: &mut EvalBatch) {
        let rows = self.rows(step);
        batch.skipped.clear();
        batch.ids.resize(rows, 0);
        batch.labels.resize(rows, None);
        batch.pixels.resize(rows * self.views.bytes(), 0);
    }

    fn make(
        &self,
        (step, row): (u64, usize),
        scratch: &mut Scratch,
        current: &AtomicU64,
        pixels: &mut [u8],
    ) -> Result<Self::Made, DataError> {
        // A row is below the number of remaining samples.
        let id = self.ids.id(step * self.batch + row as u64).unwrap_or_default();
        current.store(id, Ordering::Relaxed);
        match self.make_views(id, scratch, pixels) {
            Ok(label) => Ok((id, Ok(label))),
            Err(error) if self.corrupt != OnCorrupt::Stop && is_corrupt(&error) => {
                Ok((id, Err(error.to_string())))
            }
            Err(error) => Err(error),
        }
    }

    fn store(&self, row: usize, (id, label): Self::Made, pixels: &[u8], batch: &mut EvalBatch) {
        let bytes = self.views.bytes();
        batch.ids[row] = id;
        batch.pixels[row * bytes..(row + 1) * bytes].copy_from_slice(pixels);
        match label {
            Ok(label) => batch.labels[row] = label,
            Err(problem) => {
                batch.skipped.push(SkippedSample { row, id, problem });
                batch.skipped.sort_by_key(|skipped| skipped.row);
            }
        }
    }
    fn count(&self, batch: &EvalBatch, tally: &mut Tally) -> Result<usize, DataError> {
        tally.add(batch.ids.len(), &batch.skipped, self.corrupt)?;
        Ok(batch.ids.len())
    }
}
