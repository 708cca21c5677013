//! The data of a run on images: its samples, and batches for training and evaluation.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use calmix_core::micro_batching::{MicroBatchRows, Partition};
use calmix_core::order::Membership;
use calmix_core::rng::Seed;
use calmix_data::cloud::CACHE_LIMIT;
use calmix_data::error::DataError;
use calmix_data::loader::{
    EvalLoader, FileBlocks, ImageViews, Loader, OnCorrupt, PooledBatch, SampleIds, SampleStream, TrainBatch,
    Training, Views,
};
use calmix_dist::ProcessGroup;
use calmix_formats::error::FormatProblem;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::changes::RunInputs;
use calmix_lifecycle::run_images::RunImages;
use calmix_lifecycle::run_samples::RunSamples;
use calmix_metrics::predictions::EvalSet;
use calmix_recipe::{OrderName, Recipe};
use calmix_run::run::Paths;

use crate::trainer::error::TrainError;
use crate::trainer::ranks::layout::ParallelLayout;

/// The maximum number of pseudo-labels that are evaluated at the end of a run: a pass over a hundred million would take longer
/// than the training.
const MAX_PSEUDO_LABELS: u64 = 100_000;

/// The loader of the images of an evaluation.
pub(crate) type EvalBatches = EvalLoader;

/// An evaluation in rounds, in each of which every process predicts a batch if it has one left.
pub(crate) struct EvalRounds {
    /// The batches of this process.
    pub(crate) batches: EvalBatches,
    /// The largest number of batches of any process.
    pub(crate) rounds: u64,
    /// The number of samples of all processes.
    pub(crate) samples: u64,
}

impl EvalRounds {
    /// Returns the mean number of samples that all processes together predict per round.
    pub(crate) fn samples_per_round(&self) -> u64 {
        self.samples.div_ceil(self.rounds.max(1))
    }
}

/// The samples of a run with their images.
pub(crate) struct TrainData {
    pub(crate) samples: RunSamples,
    pub(crate) images: RunImages,
    views: Arc<dyn Views>,
    /// The number of processes on this machine.
    processes: usize,
}

impl TrainData {
    /// Opens the dataset of a recipe as [`RunSamples::open`] does. The `processes` of this machine share its loader threads and
    /// its memory.
    pub(crate) fn open(
        recipe: &Recipe,
        paths: &Paths,
        inputs: Option<&RunInputs>,
        processes: usize,
    ) -> Result<Self, LifecycleError> {
        Ok(Self::new(recipe, RunSamples::open(recipe, paths, inputs)?, processes))
    }

    /// Creates the data of a dataset with a split.
    pub(crate) fn new(recipe: &Recipe, samples: RunSamples, processes: usize) -> Self {
        let images = RunImages::new(recipe, &samples.dataset, processes);
        let views = ImageViews::new(Arc::clone(&images.images), Arc::clone(&images.augment));
        Self { samples, images, views, processes: processes.max(1) }
    }

    /// Returns the size of a view in bytes.
    pub(crate) fn image_bytes(&self) -> usize {
        self.views.bytes()
    }

    /// Returns the number of unlabelled samples of each micro-batch of this process; zero if none are drawn.
    pub(crate) fn samples_per_micro_batch(&self, recipe: &Recipe, layout: &ParallelLayout) -> Vec<usize> {
        let samples = NonZeroU64::new(self.samples.unlabelled().len());
        let micro_batches = layout.micro_batching().count();
        let membership = samples.and_then(|n| Membership::new(Seed(recipe.train.seed), n, micro_batches));
        let length =
            |micro_batch: usize| membership.as_ref().map_or(0, |all| all.len(micro_batch as u64) as usize);
        layout.local().map(length).collect()
    }

    /// Loads the batches of these steps, of each the rows of this process.
    pub(crate) fn batches(
        &self,
        recipe: &Recipe,
        layout: &ParallelLayout,
        steps: Range<u64>,
    ) -> Result<Loader, TrainError> {
        let train = &recipe.train;
        // The trainer counts corrupt samples over all processes, so the loader sets no limit.
        let corrupt = match recipe.loader.corrupt() {
            OnCorrupt::Skip { .. } => OnCorrupt::Skip { share: 1.0 },
            OnCorrupt::Stop => OnCorrupt::Stop,
        };
        let unlabelled = self.samples.unlabelled();
        let training = Training {
            blocks: self.blocks(recipe, layout, unlabelled)?,
            micro_batching: layout.micro_batching(),
            micro_batches: layout.micro_batches(),
            labelled: SampleStream { ids: self.samples.labelled().into(), batch: train.batch },
            unlabelled: SampleStream { ids: unlabelled.clone(), batch: recipe.unlabelled() },
            corrupt,
            ..Training::new(Seed(train.seed), steps)
        };
        Ok(Loader::new(Arc::clone(&self.views), training, self.images.workers)?)
    }

    /// Returns the files of the unlabelled samples, if these are ordered by block.
    fn blocks(
        &self,
        recipe: &Recipe,
        layout: &ParallelLayout,
        unlabelled: &SampleIds,
    ) -> Result<Option<FileBlocks>, TrainError> {
        let dataset = &self.samples.dataset;
        let files = NonZeroU64::new(recipe.dataset.block.into()).unwrap_or(NonZeroU64::MIN);
        if recipe.dataset.order != OrderName::Blocks || recipe.unlabelled() == 0 {
            return Ok(None);
        }
        if let Some(limit) = dataset.cache_limit() {
            // For each micro-batch of the step, one block is read while the next is fetched.
            let blocks = 2 * layout.local().len() as u64 * self.processes as u64;
            let needed = blocks.saturating_mul(files.get()).saturating_mul(dataset.largest_part()?);
            if needed > limit {
                let problem = format!(
                    "{blocks} blocks of {files} shards need {needed} bytes of cache, but it may hold {limit}"
                );
                let hint = format!("set {CACHE_LIMIT} to more gigabytes, or set a smaller dataset.block");
                let error = DataError::new(&recipe.dataset.path, FormatProblem::Limit(problem));
                return Err(error.hint(hint).into());
            }
        }
        Ok(Some(FileBlocks::find(dataset, unlabelled, files)?))
    }

    /// Loads the samples of a split in batches, without augmentation; `None` if the split has no samples. The processes get
    /// contiguous ranges of about equal size.
    pub(crate) fn samples_of(
        &self,
        recipe: &Recipe,
        split: EvalSet,
        processes: &ProcessGroup,
    ) -> Result<Option<EvalRounds>, TrainError> {
        self.in_batches(recipe, &self.samples.of_split(split), processes)
    }

    /// Loads the unlabelled samples whose pseudo-labels can be evaluated, or a part of them if there are very many.
    pub(crate) fn evaluated_samples(
        &self,
        recipe: &Recipe,
        processes: &ProcessGroup,
    ) -> Result<Option<EvalRounds>, TrainError> {
        let mut evaluated = Vec::new();
        for id in self.samples.some_unlabelled_ids(MAX_PSEUDO_LABELS) {
            if self.samples.evaluated_class(id)?.is_some() {
                evaluated.push(id);
            }
        }
        self.in_batches(recipe, &evaluated.as_slice().into(), processes)
    }

    fn in_batches(
        &self,
        recipe: &Recipe,
        samples: &SampleIds,
        processes: &ProcessGroup,
    ) -> Result<Option<EvalRounds>, TrainError> {
        if samples.is_empty() {
            return Ok(None);
        }
        let batch = u64::from(recipe.evaluate.batch.max(1));
        let (size, rank) = (processes.size() as u64, processes.rank() as u64);
        let cut = |n: u64| (samples.len().div_ceil(batch) * n / size * batch).min(samples.len());
        let ids = samples.slice(cut(rank)..cut(rank + 1));
        let stream = SampleStream { ids, batch: recipe.evaluate.batch };
        let views = Arc::clone(&self.views);
        let (corrupt, workers) = (recipe.loader.corrupt(), self.images.workers);
        let rounds = samples.len().div_ceil(batch).div_ceil(size);
        let batches = EvalLoader::new(views, stream, corrupt, workers)?;
        Ok(Some(EvalRounds { batches, rounds, samples: samples.len() }))
    }
}

/// The time for which processes wait for a batch although they have to stop, so that all of them can complete the step.
const STOP_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Returns the batch of a step.
///
/// # Errors
/// The error of the loader; [`DataError::Interrupted`] if the run has to `stop`.
pub(crate) fn next_batch(
    batches: &mut Loader,
    step: u64,
    processes: &ProcessGroup,
    stop: &AtomicBool,
) -> Result<PooledBatch<TrainBatch>, DataError> {
    let grace = if processes.size() == 1 { Duration::ZERO } else { STOP_GRACE_PERIOD };
    let mut stop_seen = None;
    let mut is_over =
        || stop.load(Ordering::Relaxed) && stop_seen.get_or_insert_with(Instant::now).elapsed() >= grace;
    batches.next_unless(&mut is_over).unwrap_or(Err(DataError::NoWorkers { step }))
}

impl TrainData {
    /// Returns a batch of the right size that is not trained on.
    pub(crate) fn blank_batch(&self, step: u64, partition: &Partition) -> TrainBatch {
        let rows = |of: fn(&MicroBatchRows) -> usize| partition.micro_batches.last().map_or(0, of);
        let labelled = rows(|rows| rows.labelled.end);
        let unlabelled = rows(|rows| rows.unlabelled.end);
        let bytes = self.image_bytes();
        let mut batch = TrainBatch { step, ..TrainBatch::default() };
        batch.labelled.ids = vec![0; labelled];
        batch.labelled.epochs = vec![0; labelled];
        batch.labelled.labels = vec![0; labelled];
        batch.labelled.pixels = vec![0; labelled * bytes];
        batch.unlabelled.ids = vec![0; unlabelled];
        batch.unlabelled.epochs = vec![0; unlabelled];
        batch.unlabelled.slots = vec![0; unlabelled];
        batch.unlabelled.weak = vec![0; unlabelled * bytes];
        batch.unlabelled.strong = vec![0; unlabelled * bytes];
        batch
    }
}
