//! CIFAR-10 with four labels per class, from the loader.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use calmix_core::rng::Seed;
use calmix_data::augment::Augment;
use calmix_data::dataset::Dataset;
use calmix_data::loader::{ImageSource, ImageViews, InMemory, Loader, SampleStream, Training, Workers};
use calmix_data::prepare::prepare;
use calmix_data::source::SourceSpec;
use calmix_data::split::{LabelSplit, SplitPlan};
use tempfile::TempDir;

/// The number of the loader's threads. One makes a batch in a fraction of a step; a second would only compete with libtorch's.
const WORKERS: NonZeroUsize = NonZeroUsize::MIN;
/// A cache size for all of CIFAR-10, in bytes.
const KEPT_BYTES: u64 = 256 << 20;

/// The dataset and its labelled samples.
pub(super) struct Cifar {
    images: Arc<dyn ImageSource>,
    views: Arc<Augment>,
    /// The stream of a step's labelled rows.
    labelled: SampleStream,
    unlabelled: SampleStream,
    pub(super) samples: u64,
    /// The samples that keep their label.
    pub(super) labelled_ids: Vec<u64>,
    /// Keeps the folder until the dataset is closed.
    _prepared: TempDir,
}

impl Cifar {
    /// Prepares the files below `folder` for batches of these sizes.
    pub(super) fn open(folder: &Path, seed: Seed, rows: [u32; 2]) -> Result<Self> {
        let prepared = tempfile::tempdir().context("no folder for the prepared dataset")?;
        let target = prepared.path().join("cifar10");
        prepare(&SourceSpec::Cifar10, folder, &target)?;
        let dataset = Dataset::open(&target, folder)?;
        let split = LabelSplit::draw(&dataset, SplitPlan::new(seed, "train"))?;
        Ok(Self {
            labelled: SampleStream { ids: split.labelled().into(), batch: rows[0] },
            unlabelled: SampleStream { ids: split.unlabelled(&dataset)?.into(), batch: rows[1] },
            samples: dataset.len(),
            labelled_ids: split.labelled().to_vec(),
            images: Arc::new(InMemory::new(dataset, KEPT_BYTES)),
            views: Arc::new(Augment::usb(32)),
            _prepared: prepared,
        })
    }

    /// Starts loading the batches of these steps.
    pub(super) fn loader(&self, seed: Seed, steps: Range<u64>) -> Result<Loader> {
        let training = Training {
            labelled: self.labelled.clone(),
            unlabelled: self.unlabelled.clone(),
            ..Training::new(seed, steps)
        };
        let workers = Workers { threads: WORKERS, ..Workers::default() };
        Ok(Loader::new(
            ImageViews::new(Arc::clone(&self.images), Arc::clone(&self.views)),
            training,
            workers,
        )?)
    }
}
