//! Runs of heads on images: the images, the backbone, its features and their cache.
//!
//! [`run_images`](calmix_lifecycle::run_images) reads the images of a run, and [`pretrained`](calmix_lifecycle::pretrained) the
//! file of the frozen backbone. ONNX Runtime computes its features, which `frozen_features` keeps in a cache that runs share.
//! Near-duplicates among the labels are found by features and pixels.

pub mod backbone;
pub(crate) mod frozen_features;
pub(crate) mod make_features;

use std::sync::atomic::AtomicBool;

use calmix_data::loader::Warn;
use calmix_lifecycle::run_images::RunImages;
use calmix_run::run::Paths;
use calmix_run::sink::WorkProgress;

#[derive(Debug, Clone, Copy)]
pub(crate) enum FeaturePlace<'a> {
    /// In the cache that the recipe names, for later runs.
    Shared,
    /// In the cache that the recipe names, or in the folder of the run if it names none.
    Run(&'a Paths),
    /// In memory, for a run that is only read, not written.
    Memory(&'a Paths),
}

impl<'a> FeaturePlace<'a> {
    /// Returns the paths of the run, if any.
    pub(crate) fn paths(self) -> Option<&'a Paths> {
        match self {
            Self::Shared => None,
            Self::Run(paths) | Self::Memory(paths) => Some(paths),
        }
    }
}

/// The part of the cache's pages that this process computes: those whose number is `index` modulo `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagePart {
    /// The index of this process, from 0.
    pub index: usize,
    /// The number of processes that share the work.
    pub of: usize,
}

impl PagePart {
    pub const ALL: Self = Self { index: 0, of: 1 };
}

/// The computation of features: the images, and the receivers of warnings and progress.
pub(crate) struct FeatureWork<'a> {
    pub(crate) images: &'a RunImages,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) warn: Warn,
    pub(crate) on_progress: Box<dyn Fn(&WorkProgress) + 'a>,
}
