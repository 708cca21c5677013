//! The rows of a training step: labelled ones in one view, unlabelled ones in two.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use calmix_core::rng::{Domain, Seed};

use super::Pictures;
use super::batch::Batch;
use super::corrupt::{OnCorrupt, Skipped, Tally, is_corrupt};
use super::crew::{Job, check_size};
use super::error::LoadError;
use super::lane::{Candidate, Lane, REPLACEMENTS};
use super::members::Members;
use super::views::{Sighting, Views};
use crate::order::{Cursor, Shard, Sharding};

/// What a run is fed with. With the dataset and the views, it fixes every byte of every batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// The seed of the run.
    pub seed: Seed,
    /// The steps to deliver: from zero, or from where a run is resumed.
    pub steps: Range<u64>,
    /// How a step is cut.
    pub sharding: Sharding,
    /// The shards that this process runs.
    pub shards: Vec<Shard>,
    /// The labelled stream.
    pub labelled: Supply,
    /// The unlabelled stream; nothing for plain supervision.
    pub unlabelled: Supply,
    /// What to do about corrupt samples.
    pub corrupt: OnCorrupt,
    /// Zero, or where a resumed run stood.
    pub tally: Tally,
}

/// Samples, and how many of them a group takes in a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Supply {
    /// The samples of the stream.
    pub members: Members,
    /// Rows that a group takes in a step.
    pub batch: u32,
}

impl Training {
    /// A run without rows, on one process: to be filled in.
    pub fn new(seed: Seed, steps: Range<u64>) -> Self {
        let sharding = Sharding::default();
        Self {
            seed,
            steps,
            sharding,
            shards: sharding.all().collect(),
            labelled: Supply::default(),
            unlabelled: Supply::default(),
            corrupt: OnCorrupt::default(),
            tally: Tally::default(),
        }
    }
}

/// The seed of the views of labelled rows; unlabelled rows take the seed of the run.
///
/// A sample may be in both streams. Its views are then drawn independently, also where both visit it at the same
/// epoch.
pub fn labelled_views(seed: Seed) -> Seed {
    seed.child(Domain::LabelledOrder as u64)
}

pub(super) struct TrainingJob<V> {
    pictures: Arc<dyn Pictures>,
    views: Arc<V>,
    steps: Range<u64>,
    labelled: Lane,
    unlabelled: Lane,
    corrupt: OnCorrupt,
}

/// What is known of a row.
pub(super) struct Row {
    shown: Candidate,
    label: u32,
    skipped: Vec<(u64, String)>,
}

/// What a worker keeps: the current epochs of both streams' shards, and the memory of the views.
pub(super) struct Tools<S> {
    labelled: Vec<Cursor>,
    unlabelled: Vec<Cursor>,
    scratch: S,
}

impl<V: Views> TrainingJob<V> {
    pub(super) fn new(
        pictures: Arc<dyn Pictures>,
        views: Arc<V>,
        training: Training,
    ) -> Result<Self, LoadError> {
        if let Some(&shard) = training.shards.iter().find(|&&shard| !training.sharding.has(shard)) {
            return Err(LoadError::NoSuchShard(shard));
        }
        let seed = training.seed;
        let lane = |supply, domain, views| Lane::new(&training, supply, domain, views);
        let labelled = lane(&training.labelled, Domain::LabelledOrder, labelled_views(seed))?;
        let unlabelled = lane(&training.unlabelled, Domain::UnlabelledOrder, seed)?;
        check_size((labelled.rows() + unlabelled.rows()) as u64, views.bytes().saturating_mul(2))?;
        let (steps, corrupt) = (training.steps, training.corrupt);
        Ok(Self { pictures, views, steps, labelled, unlabelled, corrupt })
    }

    /// The views of a sample, and its class if it is a labelled one.
    fn show(
        &self,
        lane: &Lane,
        &Candidate { id, epoch, .. }: &Candidate,
        scratch: &mut V::Scratch,
        pixels: &mut [u8],
    ) -> Result<u32, LoadError> {
        let unread = |error| LoadError::Sample { id, error: Box::new(error) };
        let unseen = |problem| LoadError::View { id, problem };
        let mut label = 0;
        if lane.is_labelled {
            label = self.pictures.label(id).map_err(unread)?.ok_or(LoadError::NoLabel { id })?;
        }
        let picture = self.pictures.picture(id).map_err(unread)?;
        let seen = Sighting { seed: lane.views, epoch, id };
        let (weak, strong) = pixels.split_at_mut(self.views.bytes());
        self.views.weak(&picture, seen, scratch, weak).map_err(unseen)?;
        if !lane.is_labelled {
            self.views.strong(&picture, seen, scratch, strong).map_err(unseen)?;
        }
        Ok(label)
    }
}

impl<V: Views + 'static> Job for TrainingJob<V> {
    type Batch = Batch;
    type Row = Row;
    type Tools = Tools<V::Scratch>;

    fn steps(&self) -> Range<u64> {
        self.steps.clone()
    }

    fn rows(&self, _: u64) -> usize {
        self.labelled.rows() + self.unlabelled.rows()
    }

    fn bytes(&self) -> usize {
        2 * self.views.bytes()
    }

    fn tools(&self) -> Self::Tools {
        Tools {
            labelled: self.labelled.cursors(),
            unlabelled: self.unlabelled.cursors(),
            scratch: V::Scratch::default(),
        }
    }

    fn open(&self, step: u64, batch: &mut Batch) {
        let Batch { step: of, labelled, unlabelled, skipped } = batch;
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
    }

    fn make(
        &self,
        (step, row): (u64, usize),
        tools: &mut Self::Tools,
        hand: &AtomicU64,
        pixels: &mut [u8],
    ) -> Result<Row, LoadError> {
        let (lane, row, cursors) = match row.checked_sub(self.labelled.rows()) {
            None => (&self.labelled, row, &mut tools.labelled),
            Some(row) => (&self.unlabelled, row, &mut tools.unlabelled),
        };
        let mut skipped = Vec::new();
        for shown in lane.candidates(step, row, cursors) {
            hand.store(shown.id, Ordering::Relaxed);
            match self.show(lane, &shown, &mut tools.scratch, pixels) {
                Ok(label) => return Ok(Row { shown, label, skipped }),
                Err(error) if self.corrupt != OnCorrupt::Stop && is_corrupt(&error) => {
                    skipped.push((shown.id, error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        Err(LoadError::NoReplacement { id: skipped.first().map_or(0, |first| first.0), tried: REPLACEMENTS })
    }

    fn store(&self, row: usize, made: Row, pixels: &[u8], batch: &mut Batch) {
        let bytes = self.views.bytes();
        let (weak, strong) = pixels.split_at(bytes);
        let place = |row: usize| row * bytes..(row + 1) * bytes;
        if let Some(row) = row.checked_sub(self.labelled.rows()) {
            batch.unlabelled.ids[row] = made.shown.id;
            batch.unlabelled.epochs[row] = made.shown.epoch;
            batch.unlabelled.slots[row] = made.shown.slot;
            batch.unlabelled.weak[place(row)].copy_from_slice(weak);
            batch.unlabelled.strong[place(row)].copy_from_slice(strong);
        } else {
            batch.labelled.ids[row] = made.shown.id;
            batch.labelled.epochs[row] = made.shown.epoch;
            batch.labelled.labels[row] = made.label;
            batch.labelled.pixels[place(row)].copy_from_slice(weak);
        }
        let skipped = made.skipped.into_iter().map(|(id, problem)| Skipped { row, id, problem });
        batch.skipped.extend(skipped);
        // Rows arrive in any order; the sort is stable, so a row's own stay in the order they were tried.
        batch.skipped.sort_by_key(|skipped| skipped.row);
    }
}
