//! Every sample once, in order, as it is.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::corrupt::{OnCorrupt, Skipped, Tally, is_corrupt};
use super::crew::{Crew, Job, check_size};
use super::error::LoadError;
use super::loan::Loan;
use super::members::Members;
use super::training::Supply;
use super::views::Views;
use super::{Counters, Pictures, Workers};

/// Samples for evaluation: their labels where they have one, and their plain views (u8, NHWC).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evaluated {
    /// Which samples.
    pub ids: Vec<u64>,
    /// Their classes.
    pub labels: Vec<Option<u32>>,
    /// Their views.
    pub pixels: Vec<u8>,
    /// Corrupt samples that were left out.
    pub skipped: Vec<Skipped>,
}

/// Goes through samples in the order they are given, without randomness; the last batch is short.
///
/// Ends after the last sample, or after the first error.
#[derive(Debug)]
pub struct Evaluation<V: Views + 'static> {
    crew: Crew<EvaluationJob<V>>,
    corrupt: OnCorrupt,
    tally: Tally,
    bytes: usize,
}

impl<V: Views + 'static> Evaluation<V> {
    /// Starts the workers on the first batches; a batch of zero counts as one.
    ///
    /// # Errors
    /// If a batch does not fit into memory, or the system refuses a thread.
    pub fn new(
        pictures: Arc<dyn Pictures>,
        views: Arc<V>,
        Supply { members, batch }: Supply,
        corrupt: OnCorrupt,
        workers: Workers,
    ) -> Result<Self, LoadError> {
        let (batch, bytes) = (u64::from(batch.max(1)), views.bytes());
        check_size(batch, bytes)?;
        let job = EvaluationJob { pictures, views, members, batch, corrupt };
        Ok(Self { crew: Crew::start(job, workers)?, corrupt, tally: Tally::default(), bytes })
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.crew.counters()
    }
}

impl<V: Views + 'static> Iterator for Evaluation<V> {
    type Item = Result<Loan<Evaluated>, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = match self.crew.next()? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        self.crew.count_images(batch.ids.len());
        if let Err(error) = self.tally.add(batch.ids.len(), &batch.skipped, self.corrupt) {
            self.crew.stop();
            return Some(Err(error));
        }
        batch.close_gaps(self.bytes);
        Some(Ok(batch))
    }
}

impl Evaluated {
    /// Takes out the rows that were skipped.
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

struct EvaluationJob<V> {
    pictures: Arc<dyn Pictures>,
    views: Arc<V>,
    members: Members,
    batch: u64,
    corrupt: OnCorrupt,
}

impl<V: Views> EvaluationJob<V> {
    fn show(&self, id: u64, scratch: &mut V::Scratch, pixels: &mut [u8]) -> Result<Option<u32>, LoadError> {
        let unread = |error| LoadError::Sample { id, error: Box::new(error) };
        let label = self.pictures.label(id).map_err(unread)?;
        let picture = self.pictures.picture(id).map_err(unread)?;
        let shown = self.views.evaluation(&picture, scratch, pixels);
        shown.map_err(|problem| LoadError::View { id, problem })?;
        Ok(label)
    }
}

impl<V: Views + 'static> Job for EvaluationJob<V> {
    type Batch = Evaluated;
    type Row = (u64, Result<Option<u32>, String>);
    type Tools = V::Scratch;

    fn steps(&self) -> Range<u64> {
        0..self.members.len().div_ceil(self.batch)
    }

    fn rows(&self, step: u64) -> usize {
        (self.members.len() - step * self.batch).min(self.batch) as usize
    }

    fn bytes(&self) -> usize {
        self.views.bytes()
    }

    fn tools(&self) -> V::Scratch {
        V::Scratch::default()
    }

    fn open(&self, step: u64, batch: &mut Evaluated) {
        let rows = self.rows(step);
        batch.skipped.clear();
        batch.ids.resize(rows, 0);
        batch.labels.resize(rows, None);
        batch.pixels.resize(rows * self.views.bytes(), 0);
    }

    fn make(
        &self,
        (step, row): (u64, usize),
        scratch: &mut V::Scratch,
        hand: &AtomicU64,
        pixels: &mut [u8],
    ) -> Result<Self::Row, LoadError> {
        // A row is below the number of samples that are left.
        let id = self.members.id(step * self.batch + row as u64).unwrap_or_default();
        hand.store(id, Ordering::Relaxed);
        match self.show(id, scratch, pixels) {
            Ok(label) => Ok((id, Ok(label))),
            Err(error) if self.corrupt != OnCorrupt::Stop && is_corrupt(&error) => {
                Ok((id, Err(error.to_string())))
            }
            Err(error) => Err(error),
        }
    }

    fn store(&self, row: usize, (id, label): Self::Row, pixels: &[u8], batch: &mut Evaluated) {
        let bytes = self.views.bytes();
        batch.ids[row] = id;
        batch.pixels[row * bytes..(row + 1) * bytes].copy_from_slice(pixels);
        match label {
            Ok(label) => batch.labels[row] = label,
            Err(problem) => {
                batch.skipped.push(Skipped { row, id, problem });
                batch.skipped.sort_by_key(|skipped| skipped.row);
            }
        }
    }
}
