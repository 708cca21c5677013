//! The computation of features: where they are kept, which pages of the cache a process computes, and how progress is shown.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use calmix_data::augment::Augment;
use calmix_data::loader::{ImageSource, Warn, Workers};
use calmix_run::run::Paths;
use calmix_run::sink::{Work, WorkProgress};

use calmix_lifecycle::run_images::RunImages;

/// Where features are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FeaturePlace<'a> {
    /// In the cache that the recipe names, for runs that come later.
    Shared,
    /// In the cache that the recipe names, or in the folder of the run if it names none.
    Run(&'a Paths),
    /// In memory, for a run that is only read.
    Memory(&'a Paths),
}

impl<'a> FeaturePlace<'a> {
    /// The paths of the run, if there is one.
    pub(crate) fn paths(self) -> Option<&'a Paths> {
        match self {
            Self::Shared => None,
            Self::Run(paths) | Self::Memory(paths) => Some(paths),
        }
    }
}

/// The pages of the cache that this process computes: those whose number is `index` modulo `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageShard {
    /// The index of this process, from 0.
    pub index: usize,
    /// The number of processes that share the work.
    pub of: usize,
}

impl PageShard {
    /// All pages.
    pub const WHOLE: Self = Self { index: 0, of: 1 };
}

/// The computation of features: the images, their views, and the receiver of progress.
pub(crate) struct FeatureWork<'a> {
    pub(crate) images: Arc<dyn ImageSource>,
    pub(crate) augment: Arc<Augment>,
    pub(crate) workers: Workers,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) warn: Warn,
    tell: Box<dyn FnMut(&WorkProgress) + 'a>,
    progress: WorkProgress,
    start: Instant,
}

impl<'a> FeatureWork<'a> {
    /// The work on the images of a run.
    pub(crate) fn new(
        images: &RunImages,
        stop: &'a AtomicBool,
        warn: Warn,
        tell: impl FnMut(&WorkProgress) + 'a,
    ) -> Self {
        Self {
            images: Arc::clone(&images.images),
            augment: Arc::clone(&images.augment),
            workers: images.workers,
            stop,
            warn,
            tell: Box::new(tell),
            progress: features(0),
            start: Instant::now(),
        }
    }

    pub(crate) fn begin(&mut self, total: u64) {
        self.progress = features(total);
        self.start = Instant::now();
        // The first views take a while: the user sees what is being computed.
        (self.tell)(&self.progress);
    }

    pub(crate) fn made(&mut self, views: u64) {
        self.progress.done += views;
        self.progress.seconds = self.start.elapsed().as_secs_f64();
        (self.tell)(&self.progress);
    }
}

/// The progress before the first of `total` views.
fn features(total: u64) -> WorkProgress {
    WorkProgress { work: Work::Features, done: 0, total, seconds: 0.0 }
}
