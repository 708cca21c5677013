//! The batches of a training: a pure function of the seed and the step, as with images. A thread reads vectors that are not in
//! memory while the previous step is computed.

use std::num::NonZeroU64;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::Scope;

use calmix_core::order::{Cursor, Feed, Membership, Order};
use calmix_core::rng::{Domain, Seed, Stream};

use crate::error::HeadError;
use crate::sample_vectors::SampleVectors;
use crate::samples::{HeadSamples, TrainingRows};
use crate::settings::HeadSettings;

/// The vectors of one step.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) labelled_ids: Vec<u64>,
    pub(crate) labels: Vec<u32>,
    pub(crate) unlabelled_ids: Vec<u64>,
    /// The position of each unlabelled row's sample among the unlabelled samples.
    pub(crate) slots: Vec<u64>,
    /// The class of each unlabelled row whose pseudo-label can be evaluated, otherwise `None`.
    pub(crate) truth: Vec<Option<u32>>,
    /// Weak views: of the labelled rows, then of the unlabelled ones.
    pub(crate) weak: Vec<f32>,
    /// Strong views of the unlabelled rows.
    pub(crate) strong: Vec<f32>,
}

impl Batch {
    fn clear(&mut self) {
        self.labelled_ids.clear();
        self.labels.clear();
        self.unlabelled_ids.clear();
        self.slots.clear();
        self.truth.clear();
        self.weak.clear();
        self.strong.clear();
    }
}

/// Draws the batches of a run.
pub(crate) struct Batches<'a> {
    samples: HeadSamples<'a>,
    rows: &'a TrainingRows,
    seed: Seed,
    labelled: FeedCursor,
    unlabelled: Option<(FeedCursor, Membership)>,
    /// The known class of each row; `None` for rows that are also trained on with their label, which the head has memorised.
    truth: Vec<Option<u32>>,
    /// A buffer for numbers from a file.
    read: Vec<f32>,
}

/// An order of samples with its cursor.
struct FeedCursor {
    feed: Feed,
    cursor: Cursor,
}

impl FeedCursor {
    fn new(order: Order, rows: usize) -> Self {
        Self { feed: Feed { order, rows: rows as u64 }, cursor: order.cursor() }
    }

    /// Returns epoch and index of each row of a step.
    fn visits(&mut self, step: u64) -> Vec<(u64, u64)> {
        let Self { feed, cursor } = self;
        let visit = |row| cursor.at(feed.position(step, row));
        (0..feed.rows).map(visit).map(|visit| (visit.epoch, visit.index)).collect()
    }
}

impl<'a> Batches<'a> {
    pub(crate) fn new(
        samples: HeadSamples<'a>,
        rows: &'a TrainingRows,
        settings: &HeadSettings,
    ) -> Result<Self, HeadError> {
        let seed = settings.seed;
        let missing = || HeadError::Input("there is no sample to train on".to_owned());
        let len = NonZeroU64::new(rows.labelled.len() as u64).ok_or_else(missing)?;
        let order = Order { seed, domain: Domain::LabelledOrder, len };
        let labelled = FeedCursor::new(order, settings.batch);
        let unlabelled = if settings.unlabelled_batch == 0 {
            None
        } else {
            let len = NonZeroU64::new(rows.unlabelled.len() as u64);
            let len = len.ok_or_else(|| {
                HeadError::Input("this method needs unlabelled samples, and there are none".to_owned())
            })?;
            let membership = Membership::new(seed, len, NonZeroU64::MIN).ok_or_else(missing)?;
            let order = membership.order(0).ok_or_else(missing)?;
            Some((FeedCursor::new(order, settings.unlabelled_batch), membership))
        };
        let mut truth = samples.labels.to_vec();
        for &row in &rows.labelled {
            truth.get_mut(row).into_iter().for_each(|class| *class = None);
        }
        Ok(Self { samples, rows, seed, labelled, unlabelled, truth, read: Vec::new() })
    }

    /// Returns whether vectors are read without a system call.
    pub(crate) fn are_in_memory(&self) -> bool {
        matches!(self.samples.vectors, SampleVectors::Memory(_))
    }

    /// Draws the batch of a step into `batch`, reusing its memory.
    pub(crate) fn draw(&mut self, step: u64, batch: &mut Batch) -> Result<(), HeadError> {
        batch.clear();
        let samples = self.samples;
        // Labelled and unlabelled visits of one sample draw different views.
        let labelled_seed = self.seed.child(Domain::LabelledOrder as u64);
        for (epoch, index) in self.labelled.visits(step) {
            let row = self.rows.labelled.get(index as usize).copied().unwrap_or_default();
            let id = samples.ids.get(row).copied().unwrap_or_default();
            batch.labelled_ids.push(id);
            batch.labels.push(samples.label(row).unwrap_or_default());
            let mut stream = labelled_seed.stream(Domain::FeatureView, epoch, id);
            let view = drawn_view(1, samples.weak, &mut stream);
            samples.read(row, view, &mut batch.weak)?;
        }
        let Some((feed, membership)) = &mut self.unlabelled else { return Ok(()) };
        for (epoch, slot) in feed.visits(step) {
            let index = membership.sample(0, slot).unwrap_or_default();
            let row = self.rows.unlabelled.get(index as usize).copied().unwrap_or_default();
            let id = samples.ids.get(row).copied().unwrap_or_default();
            batch.unlabelled_ids.push(id);
            batch.slots.push(slot);
            batch.truth.push(self.truth.get(row).copied().flatten());
            let mut stream = self.seed.stream(Domain::FeatureView, epoch, id);
            let weak = drawn_view(1, samples.weak, &mut stream);
            let strong = drawn_view(1 + samples.weak, samples.strong, &mut stream);
            let into = [&mut batch.weak, &mut batch.strong];
            samples.read_two(row, [weak, strong], into, &mut self.read)?;
        }
        Ok(())
    }
}

/// Draws the view that a visit uses; the one without augmentation if there is no other.
fn drawn_view(first: u8, count: u8, stream: &mut Stream) -> usize {
    if count == 0 { 0 } else { usize::from(first) + stream.index(usize::from(count)) }
}

/// The number of batches read ahead. On a single core, the threads take turns once in this many steps.
const READ_AHEAD: usize = 2;

/// The batches of all steps, from the first.
pub(crate) enum StepBatches<'a> {
    /// Drawn on demand.
    Drawn {
        batches: Box<Batches<'a>>,
        /// The next step.
        step: u64,
    },
    /// Drawn by another thread.
    Ahead {
        ready: Receiver<Result<Batch, HeadError>>,
        /// Batches whose memory is reused.
        used: Sender<Batch>,
    },
}

impl<'a> StepBatches<'a> {
    /// Draws the batches of steps 0 to `steps`. A thread that reads ahead ends with its receiver.
    pub(crate) fn new<'scope>(batches: Batches<'a>, steps: u64, scope: &'scope Scope<'scope, '_>) -> Self
    where
        'a: 'scope,
    {
        let mut batches = Box::new(batches);
        if batches.are_in_memory() {
            return Self::Drawn { batches, step: 0 };
        }
        let (send, ready) = sync_channel(READ_AHEAD);
        let (used, unused) = channel::<Batch>();
        scope.spawn(move || {
            for step in 0..steps {
                let mut batch = unused.try_recv().unwrap_or_default();
                let drawn = batches.draw(step, &mut batch);
                let is_last = drawn.is_err();
                if send.send(drawn.map(|()| batch)).is_err() || is_last {
                    return;
                }
            }
        });
        Self::Ahead { ready, used }
    }

    /// Replaces `batch` by the next one.
    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<(), HeadError> {
        match self {
            Self::Drawn { batches, step } => {
                batches.draw(*step, batch)?;
                *step += 1;
            }
            Self::Ahead { ready, used } => {
                let ended = || HeadError::Read("the thread that reads vectors has ended".to_owned());
                let next = ready.recv().map_err(|_| ended())??;
                // The reader has ended after the last step; its memory is then not needed.
                used.send(std::mem::replace(batch, next)).ok();
            }
        }
        Ok(())
    }
}
