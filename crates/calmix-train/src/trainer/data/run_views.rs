//! The rows of a run's batches: views of images, or features of a frozen backbone.

use std::sync::Arc;

use calmix_data::augment::{Augment, Scratch};
use calmix_data::error::DataError;
use calmix_data::features::FeatureViews;
use calmix_data::loader::{ImageViews, ViewKey, Views};

/// The views of a run.
#[derive(Debug)]
pub(crate) enum RunViews {
    /// Views of images, as pixels.
    Images(Arc<ImageViews<Augment>>),
    /// Features, as vectors.
    Features(FeatureViews),
}

impl Views for RunViews {
    type Scratch = Scratch;

    fn bytes(&self) -> usize {
        match self {
            Self::Images(views) => views.bytes(),
            Self::Features(views) => views.bytes(),
        }
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        match self {
            Self::Images(views) => views.label(id),
            Self::Features(views) => views.label(id),
        }
    }

    fn training(
        &self,
        key: ViewKey,
        scratch: &mut Scratch,
        weak: &mut [u8],
        strong: Option<&mut [u8]>,
    ) -> Result<(), DataError> {
        match self {
            Self::Images(views) => views.training(key, scratch, weak, strong),
            Self::Features(views) => views.training(key, &mut (), weak, strong),
        }
    }

    fn evaluation(&self, id: u64, scratch: &mut Scratch, out: &mut [u8]) -> Result<(), DataError> {
        match self {
            Self::Images(views) => views.evaluation(id, scratch, out),
            Self::Features(views) => views.evaluation(id, &mut (), out),
        }
    }
}
