//! Batches, made ahead of time by worker threads, in step order, the same bytes whatever the workers do.
//!
//! What a row of a batch shows is a pure function of the recipe, the step and the row: [`order`](crate::order)
//! says which sample, [`Views`] what is seen of it. Workers take a few rows at a time, in any order of
//! completion; a batch is delivered when all its rows are there, and never before the one of the step before.
//! At most [`Workers::prefetch`] batches are in the making or waiting; the memory of a batch that is dropped is
//! used again.
//!
//! ```
//! use std::sync::Arc;
//! use calmix_core::rng::Seed;
//! use calmix_data::error::DataError;
//! use calmix_data::loader::{AsIs, Loader, Members, Pictures, Supply, Training, Workers};
//! use calmix_data::picture::Picture;
//!
//! struct Grey;
//! impl Pictures for Grey {
//!     fn picture(&self, id: u64) -> Result<Picture, DataError> {
//!         Ok(Picture::filled(2, 2, [id as u8; 3]))
//!     }
//!     fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
//!         Ok(Some(id as u32 % 10))
//!     }
//! }
//!
//! let training = Training {
//!     labelled: Supply { members: Members::from(0..40), batch: 4 },
//!     unlabelled: Supply { members: Members::from(0..200), batch: 28 },
//!     ..Training::new(Seed(1), 0..3)
//! };
//! let loader = Loader::new(Arc::new(Grey), Arc::new(AsIs { width: 2, height: 2 }), training, Workers::default())?;
//! for (step, batch) in loader.enumerate() {
//!     let batch = batch?;
//!     assert_eq!(batch.step, step as u64);
//!     assert_eq!(batch.unlabelled.strong.len(), 28 * 2 * 2 * 3);
//! }
//! # Ok::<(), calmix_data::loader::LoadError>(())
//! ```

mod batch;
mod corrupt;
mod crew;
mod error;
mod evaluation;
mod lane;
mod loan;
mod members;
mod memory;
mod training;
mod views;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

pub use batch::{Batch, Labelled, Unlabelled};
pub use corrupt::{OnCorrupt, Skipped, Tally};
pub use error::LoadError;
pub use evaluation::{Evaluated, Evaluation};
pub use loan::Loan;
pub use members::Members;
pub use memory::InMemory;
pub use training::{Supply, Training, labelled_views};
pub use views::{AsIs, Sighting, Views};

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::picture::Picture;
use crew::Crew;
use training::TrainingJob;

/// Where pictures come from: a prepared [`Dataset`], or [memory](InMemory).
pub trait Pictures: Send + Sync {
    /// A sample as a picture: the same for the same id, whenever it is asked for.
    ///
    /// # Errors
    /// If it cannot be read, or is no picture.
    fn picture(&self, id: u64) -> Result<Picture, DataError>;

    /// A sample's class, if it has one.
    ///
    /// # Errors
    /// If it cannot be read.
    fn label(&self, id: u64) -> Result<Option<u32>, DataError>;
}

impl Pictures for Dataset {
    fn picture(&self, id: u64) -> Result<Picture, DataError> {
        Self::picture(self, id)
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        Self::label(self, id)
    }
}

/// Who makes the batches. Nothing of it changes a byte of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Worker threads.
    pub threads: NonZeroUsize,
    /// How many batches may be in the making or waiting.
    pub prefetch: NonZeroUsize,
    /// How long to wait for any worker to finish anything before giving up ([`LoadError::Stalled`]).
    pub patience: Duration,
}

impl Default for Workers {
    /// A thread per processor, two batches ahead, a minute of patience.
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            prefetch: NonZeroUsize::MIN.saturating_add(1),
            patience: Duration::from_mins(1),
        }
    }
}

/// What a loader has done since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Images delivered; both views of an unlabelled sample are one image.
    pub images: u64,
    /// Time since the start.
    pub elapsed: Duration,
    /// Time that the consumer spent waiting for batches.
    pub waited: Duration,
    /// Batches that were allocated, all others having been made in the memory of an earlier one.
    pub allocated: u64,
}

impl Counters {
    /// Images delivered a second since the start; zero at the start.
    pub fn images_per_second(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.images as f64 / seconds } else { 0.0 }
    }
}

/// The batches of a training run, step by step.
///
/// The iterator ends after the last step, or after the first error. Dropping it stops the workers and waits for
/// them, each of which finishes the sample it has in hand.
#[derive(Debug)]
pub struct Loader<V: Views + 'static> {
    crew: Crew<TrainingJob<V>>,
    corrupt: OnCorrupt,
    tally: Tally,
}

impl<V: Views + 'static> Loader<V> {
    /// Starts the workers on the first batches.
    ///
    /// # Errors
    /// If a stream that takes rows has no samples, a batch cannot be cut into equal shards, there are fewer
    /// unlabelled samples than shards, a shard does not exist, a batch does not fit into memory, or the system
    /// refuses a thread.
    pub fn new(
        pictures: Arc<dyn Pictures>,
        views: Arc<V>,
        training: Training,
        workers: Workers,
    ) -> Result<Self, LoadError> {
        let (corrupt, tally) = (training.corrupt, training.tally);
        let job = TrainingJob::new(pictures, views, training)?;
        Ok(Self { crew: Crew::start(job, workers)?, corrupt, tally })
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.crew.counters()
    }

    /// How many samples were seen and skipped up to the last delivered batch.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

impl<V: Views + 'static> Iterator for Loader<V> {
    type Item = Result<Loan<Batch>, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.crew.next()? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        let seen = batch.labelled.ids.len() + batch.unlabelled.ids.len();
        self.crew.count_images(seen);
        if let Err(error) = self.tally.add(seen, &batch.skipped, self.corrupt) {
            self.crew.stop();
            return Some(Err(error));
        }
        Some(Ok(batch))
    }
}
