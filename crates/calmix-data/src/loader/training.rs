//! The rows of a training step: labelled ones in one view, unlabelled ones in two.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use calmix_core::rng::{Domain, Seed};

use super::batch::TrainBatch;
use super::corrupt::{OnCorrupt, SkippedSample, Tally, is_corrupt};
use super::local_stream::{LocalStream, REPLACEMENTS, RowCandidate};
use super::row_order::RowCursor;
use super::streams::Training;
use super::views::{ViewKey, Views};
use super::worker_pool::{Job, check_size};
use crate::augment::Scratch;
use crate::error::DataError;

/// Returns the seed of the views of labelled rows; unlabelled rows use the seed of the run.
///
/// A sample may be in both streams. Its views are then independent, even if both streams visit it in the same epoch.
pub fn labelled_view_seed(seed: Seed) -> Seed {
    seed.child(Domain::LabelledOrder as u64)
}

pub(super) struct TrainingJob {
    views: Arc<dyn Views>,
    steps: Range<u64>,
    labelled: LocalStream,
    unlabelled: LocalStream,
    corrupt: OnCorrupt,
}

/// A finished row without its pixels.
pub(super) struct MadeRow {
    candidate: RowCandidate,
    label: u32,
    skipped: Vec<(u64, String)>,
}

/// The state that a worker keeps between rows: the current epochs of both streams' micro-batches, and the buffers of the
/// transform.
pub(super) struct TrainWorkerState {
    labelled: Vec<RowCursor>,
    unlabelled: Vec<RowCursor>,
    scratch: Scratch,
}

impl TrainingJob {
    pub(super) fn new(views: Arc<dyn Views>, training: Training) -> Result<Self, DataError> {
        if let Some(&micro_batch) =
            training.micro_batches.iter().find(|&&micro_batch| !training.micro_batching.has(micro_batch))
        {
            return Err(DataError::NoSuchMicroBatch(micro_batch));
        }
        let seed = training.seed;
        let local_stream =
            |samples, domain, view_seed| LocalStream::new(&training, samples, domain, view_seed);
        let labelled = local_stream(&training.labelled, Domain::LabelledOrder, labelled_view_seed(seed))?;
        let unlabelled = local_stream(&training.unlabelled, Domain::UnlabelledOrder, seed)?;
        check_size((labelled.rows() + unlabelled.rows()) as u64, views.bytes().saturating_mul(2))?;
        let (steps, corrupt) = (training.steps, training.corrupt);
        Ok(Self { views, steps, labelled, unlabelled, corrupt })
    }

    /// Makes the views of a sample; returns its class if it is labelled.
    fn make_views(
        &self,
        local_stream: &LocalStream,
        &RowCandidate { id, epoch, .. }: &RowCandidate,
        scratch: &mut Scratch,
        pixels: &mut [u8],
    ) -> Result<u32, DataError> {
        let mut label = 0;
        if local_stream.is_labelled {
            label = self.views.label(id)?.ok_or(DataError::NoLabel { id })?;
        }
        let key = ViewKey { seed: local_stream.view_seed, epoch, id };
        let (weak, strong) = pixels.split_at_mut(self.views.bytes());
        self.views.training(key, scratch, weak, (!local_stream.is_labelled).then_some(strong))?;
        Ok(label)
    }
}

impl Job for TrainingJob {
    type Batch = TrainBatch;
    type Made = MadeRow;
    type WorkerState = TrainWorkerState;

    fn steps(&self) -> Range<u64> {
        self.steps.clone()
    }

    fn rows(&self, _: u64) -> usize {
        self.labelled.rows() + self.unlabelled.rows()
    }

    fn bytes(&self) -> usize {
        2 * self.views.bytes()
    }

    fn worker_state(&self) -> Self::WorkerState {
        TrainWorkerState {
            labelled: self.labelled.cursors(),
            unlabelled: self.unlabelled.cursors(),
            scratch: Scratch::default(),
        }
    }

    fn open(&self, step: u64, batch: &mut TrainBatch) {
        let TrainBatch { step: of, labelled, unlabelled, skipped } = batch;
        let (rows, bytes) = (self.labelled.rows(), self.views.bytes());
        *of = step;
        skipped.clear();
        labelled.ids.resize(rows, 0);
        labelled.epochs.resize(rows, 0);
        labelled.labels.resize(rows, 0);
        labelled.pixels.resize(rows * bytes, 0);
        let rows = self.unlabelled.rows();
        unlabelled.ids.resize(rows, 0);
        unlabelled.epochs.resize(rows, 0);
        unlabelled.slots.resize(rows, 0);
        unlabelled.weak.resize(rows * bytes, 0);
        unlabelled.strong.resize(rows * bytes, 0);
        let prefetch_ids = self.unlabelled.prefetch_ids(step);
        if !prefetch_ids.is_empty() {
            self.views.prefetch(&prefetch_ids);
        }
    }

    fn make(
        &self,
        (step, row): (u64, usize),
        local: &mut Self::WorkerState,
        current: &AtomicU64,
        pixels: &mut [u8],
    ) -> Result<MadeRow, DataError> {
        let (local_stream, row, cursors) = match row.checked_sub(self.labelled.rows()) {
            None => (&self.labelled, row, &mut local.labelled),
            Some(row) => (&self.unlabelled, row, &mut local.unlabelled),
        };
        let mut skipped = Vec::new();
        for candidate in local_stream.candidates(step, row, cursors) {
            current.store(candidate.id, Ordering::Relaxed);
            match self.make_views(local_stream, &candidate, &mut local.scratch, pixels) {
                Ok(label) => return Ok(MadeRow { candidate, label, skipped }),
                Err(error) if self.corrupt != OnCorrupt::Stop && is_corrupt(&error) => {
                    skipped.push((candidate.id, error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        Err(DataError::NoReplacement { id: skipped.first().map_or(0, |first| first.0), tried: REPLACEMENTS })
    }

    fn store(&self, row: usize, made: MadeRow, pixels: &[u8], batch: &mut TrainBatch) {
        let bytes = self.views.bytes();
        let (weak, strong) = pixels.split_at(bytes);
        let range = |row: usize| row * bytes..(row + 1) * bytes;
        if let Some(row) = row.checked_sub(self.labelled.rows()) {
            batch.unlabelled.ids[row] = made.candidate.id;
            batch.unlabelled.epochs[row] = made.candidate.epoch;
            batch.unlabelled.slots[row] = made.candidate.slot;
            batch.unlabelled.weak[range(row)].copy_from_slice(weak);
            batch.unlabelled.strong[range(row)].copy_from_slice(strong);
        } else {
            batch.labelled.ids[row] = made.candidate.id;
            batch.labelled.epochs[row] = made.candidate.epoch;
            batch.labelled.labels[row] = made.label;
            batch.labelled.pixels[range(row)].copy_from_slice(weak);
        }
        let skipped = made.skipped.into_iter().map(|(id, problem)| SkippedSample { row, id, problem });
        batch.skipped.extend(skipped);
        // Rows arrive in any order. The sort is stable, so the skipped samples of a row keep their order.
        batch.skipped.sort_by_key(|skipped| skipped.row);
    }
    fn count(&self, batch: &TrainBatch, tally: &mut Tally) -> Result<usize, DataError> {
        let images = batch.labelled.ids.len() + batch.unlabelled.ids.len();
        tally.add(images, &batch.skipped, self.corrupt)?;
        Ok(images)
    }
}
