//! Worker threads that prefetch batches and deliver them in step order, with the same bytes for any number of workers.
//!
//! A row of a batch is a pure function of the recipe, the step and the row: [`order`](calmix_core::order) chooses the
//! sample, [`Views`] make its views. Each worker takes a few rows at a time, and rows may finish in any order.
//! The loader delivers a batch once all its rows are complete and the batch of the step before was delivered. At most
//! [`Workers::prefetch`] batches are being made or are waiting. Dropping a batch returns its memory to the loader.
//!
//! ```
//! use std::sync::Arc;
//! use calmix_core::rng::Seed;
//! use calmix_data::error::DataError;
//! use calmix_data::loader::{AsIs, ImageSource, Loader, ImageViews, SampleIds, SampleStream, Training, Workers};
//! use calmix_data::image::Image;
//!
//! struct Grey;
//! impl ImageSource for Grey {
//!     fn image(&self, id: u64) -> Result<Image, DataError> {
//!         Ok(Image::filled(2, 2, [id as u8; 3]))
//!     }
//!     fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
//!         Ok(Some(id as u32 % 10))
//!     }
//! }
//!
//! let training = Training {
//!     labelled: SampleStream { ids: SampleIds::from(0..40), batch: 4 },
//!     unlabelled: SampleStream { ids: SampleIds::from(0..200), batch: 28 },
//!     ..Training::new(Seed(1), 0..3)
//! };
//! let views = ImageViews::new(Arc::new(Grey), Arc::new(AsIs { width: 2, height: 2 }));
//! let loader = Loader::new(views, training, Workers::default())?;
//! for (step, batch) in loader.enumerate() {
//!     let batch = batch?;
//!     assert_eq!(batch.step, step as u64);
//!     assert_eq!(batch.unlabelled.strong.len(), 28 * 2 * 2 * 3);
//! }
//! # Ok::<(), calmix_data::error::DataError>(())
//! ```

mod batch;
mod corrupt;
mod eval_loader;
mod file_blocks;
mod memory;
mod pooled_batch;
mod row_order;
mod sample_ids;
mod sharded_stream;
mod training;
mod transform;
mod views;
mod worker_pool;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use calmix_formats::image::Image;

pub use batch::{LabelledViews, TrainBatch, UnlabelledViews};
pub use corrupt::{OnCorrupt, SkippedSample};
pub use eval_loader::{EvalBatch, EvalLoader};
pub use file_blocks::FileBlocks;
pub use memory::InMemory;
pub use pooled_batch::PooledBatch;
pub use sample_ids::SampleIds;
pub use training::{SampleStream, Training, labelled_views};
pub use transform::{AsIs, Transform, ViewKey};
pub use views::{ImageViews, Views};

use crate::dataset::Dataset;
use crate::error::DataError;
pub use crate::outage::Warn;
use crate::tally::Tally;
use training::TrainingJob;
use worker_pool::WorkerPool;

/// A source of decoded images: a prepared [`Dataset`], or [memory](InMemory).
pub trait ImageSource: Send + Sync {
    /// Decodes a sample; the same id always gives the same image.
    ///
    /// # Errors
    /// If the sample cannot be read or decoded.
    fn image(&self, id: u64) -> Result<Image, DataError>;

    /// A sample's class; `None` if it is unlabelled.
    ///
    /// # Errors
    /// If the label cannot be read.
    fn label(&self, id: u64) -> Result<Option<u32>, DataError>;

    /// The name of a sample for the user.
    ///
    /// # Errors
    /// If it cannot be read.
    fn name(&self, id: u64) -> Result<String, DataError> {
        Ok(format!("sample {id}"))
    }

    /// Starts to fetch the files of these samples, which will be needed soon.
    fn prefetch(&self, _ids: &[u64]) {}
}

impl ImageSource for Dataset {
    fn prefetch(&self, ids: &[u64]) {
        Self::prefetch(self, ids);
    }

    fn image(&self, id: u64) -> Result<Image, DataError> {
        Self::image(self, id)
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        Self::label(self, id)
    }

    fn name(&self, id: u64) -> Result<String, DataError> {
        self.sample_name(id)
    }
}

/// A source that is shared.
impl<S: ImageSource + ?Sized> ImageSource for Arc<S> {
    fn image(&self, id: u64) -> Result<Image, DataError> {
        (**self).image(id)
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        (**self).label(id)
    }

    fn name(&self, id: u64) -> Result<String, DataError> {
        (**self).name(id)
    }

    fn prefetch(&self, ids: &[u64]) {
        (**self).prefetch(ids);
    }
}

/// Settings of the worker pool. They never change the bytes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Worker threads.
    pub threads: NonZeroUsize,
    /// How many batches may be in progress or waiting.
    pub prefetch: NonZeroUsize,
    /// How long the loader waits for a worker to finish a row before it gives up ([`DataError::Stalled`]).
    pub patience: Duration,
}

impl Default for Workers {
    /// One thread per processor, two prefetched batches, a timeout of two minutes: longer than workers wait for
    /// unavailable storage.
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            prefetch: NonZeroUsize::MIN.saturating_add(1),
            patience: Duration::from_mins(2),
        }
    }
}

/// Counters of a loader since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Images delivered; both views of an unlabelled sample are one image.
    pub images: u64,
    /// Time since the start.
    pub elapsed: Duration,
    /// Time that the consumer spent waiting for batches.
    pub waited: Duration,
    /// Batches that were newly allocated; all others reused the memory of an earlier batch.
    pub allocated: u64,
}

/// The batches of a training run, step by step.
///
/// The iterator ends after the last step, or after the first error. Temporarily unavailable storage is not an error: workers
/// wait for it. Dropping the loader stops the workers: each finishes the sample it is working on, and the drop waits for
/// that; a worker that hangs is left behind.
#[derive(Debug)]
pub struct Loader<V: Views + 'static> {
    pool: WorkerPool<TrainingJob<V>>,
    corrupt: OnCorrupt,
    tally: Tally,
}

impl<V: Views + 'static> Loader<V> {
    /// Starts the workers on the first batches.
    ///
    /// # Errors
    /// If a stream that takes rows has no samples, a batch cannot be divided into equal shards, there are fewer
    /// unlabelled samples than shards, a shard does not exist, a batch does not fit into memory, or the system
    /// refuses a thread.
    pub fn new(views: Arc<V>, training: Training, workers: Workers) -> Result<Self, DataError> {
        let (corrupt, tally) = (training.corrupt, training.tally);
        let job = TrainingJob::new(views, training)?;
        Ok(Self { pool: WorkerPool::start(job, workers)?, corrupt, tally })
    }

    /// Sets the callback for warnings: that the storage is unavailable, and that it is available again.
    #[must_use]
    pub fn warning(self, warn: Warn) -> Self {
        self.pool.set_warn(warn);
        self
    }

    /// The next batch, as by [`next`](Iterator::next), unless `stop`, which is called ten times per second, returns true
    /// before: then [`DataError::Interrupted`], and the loader ends.
    pub fn next_unless(
        &mut self,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Result<PooledBatch<TrainBatch>, DataError>> {
        let batch = match self.pool.next(stop)? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        let seen = batch.labelled.ids.len() + batch.unlabelled.ids.len();
        self.pool.count_images(seen);
        if let Err(error) = self.tally.add(seen, &batch.skipped, self.corrupt) {
            self.pool.stop();
            return Some(Err(error));
        }
        Some(Ok(batch))
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.pool.counters()
    }

    /// How many samples were read and skipped up to the last delivered batch.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

impl<V: Views + 'static> Iterator for Loader<V> {
    type Item = Result<PooledBatch<TrainBatch>, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_unless(&mut || false)
    }
}
