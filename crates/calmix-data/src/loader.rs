//! Worker threads that prefetch batches and deliver them in step order, with the same bytes for any number of workers.
//!
//! Each row of a batch is a pure function of the recipe, the step and the row: [`order`](calmix_core::order) chooses the
//! sample, [`Views`] makes its views. A worker takes a few rows at a time, and rows may finish in any order. The loader
//! delivers a batch when all its rows are complete and the previous batch was delivered. At most [`Workers::prefetch`]
//! batches are in progress or waiting. Dropping a batch returns its memory to the loader.
//!
//! ```
//! use std::sync::Arc;
//! use calmix_core::rng::Seed;
//! use calmix_data::augment::Augment;
//! use calmix_data::error::DataError;
//! use calmix_data::loader::{ImageSource, Loader, ImageViews, SampleIds, SampleStream, Training, Workers};
//! use calmix_formats::image::Image;
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
//! let views = ImageViews::new(Arc::new(Grey), Arc::new(Augment::usb(2)));
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
mod local_stream;
mod memory;
mod row_order;
mod sample_ids;
mod streams;
mod training;
mod views;
mod worker_pool;
mod workers;

use std::sync::Arc;

pub use batch::{LabelledViews, PooledBatch, TrainBatch, UnlabelledViews};
pub use corrupt::{OnCorrupt, SkippedSample, Tally};
pub use eval_loader::{EvalBatch, EvalLoader};
pub use memory::InMemory;
pub use sample_ids::SampleIds;
pub use streams::{FileBlocks, SampleStream, Training};
pub use training::labelled_view_seed;
pub use views::{ImageSource, ImageViews, ViewKey, Views};
pub(crate) use views::{image, no_view};
pub use workers::{Counters, Workers};

use crate::error::DataError;
pub use crate::outage::Warn;
use training::TrainingJob;
use worker_pool::WorkerPool;

/// The batches of a training run, step by step.
///
/// The iterator ends after the last step or the first error. Temporarily unavailable storage is not an error: workers wait
/// for it. Dropping the loader stops the workers and waits until each has finished its current sample; a worker that hangs
/// is left behind.
#[derive(Debug)]
pub struct Loader {
    pool: WorkerPool<TrainingJob>,
}

impl Loader {
    /// Starts the workers on the first batches.
    ///
    /// # Errors
    /// If a stream that takes rows has no samples, a batch cannot be divided into equal micro-batches, there are fewer
    /// unlabelled samples than micro-batches, a micro-batch does not exist, a batch does not fit into memory, or the system
    /// refuses a thread.
    pub fn new(views: Arc<dyn Views>, training: Training, workers: Workers) -> Result<Self, DataError> {
        let tally = training.tally;
        let job = TrainingJob::new(views, training)?;
        Ok(Self { pool: WorkerPool::start(job, workers, tally)? })
    }

    /// Sets the callback for warnings about unavailable storage and its recovery.
    #[must_use]
    pub fn warning(self, warn: Warn) -> Self {
        self.pool.set_warn(warn);
        self
    }

    /// Returns the next batch as [`next`](Iterator::next) does, unless `stop` returns true first; `stop` is polled ten times
    /// per second. Then the result is [`DataError::Interrupted`], and the loader ends.
    pub fn next_unless(
        &mut self,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Result<PooledBatch<TrainBatch>, DataError>> {
        self.pool.next(stop)
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> Counters {
        self.pool.counters()
    }

    /// Returns the number of samples read and skipped up to the last delivered batch.
    pub fn tally(&self) -> Tally {
        self.pool.tally()
    }
}

impl Iterator for Loader {
    type Item = Result<PooledBatch<TrainBatch>, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_unless(&mut || false)
    }
}
