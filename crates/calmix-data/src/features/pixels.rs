//! The pixels of several views of a sample in one row: the input of a backbone.

use std::sync::Arc;

use calmix_core::rng::Seed;

use super::FeatureView;
use crate::augment::{Augment, Scratch};
use crate::error::DataError;
use crate::loader::{ImageSource, Transform, ViewKey, Views};

/// What the cached views of all runs depend on: they share them.
const SEED: Seed = Seed(0);

/// Several views of each image in one row, loaded by the loader for evaluation.
pub struct ViewPixels {
    /// The images.
    pub source: Arc<dyn ImageSource>,
    /// What makes views of them.
    pub augment: Arc<Augment>,
    /// Which views, in this order.
    pub views: Vec<FeatureView>,
}

impl std::fmt::Debug for ViewPixels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ViewPixels").field("views", &self.views).finish_non_exhaustive()
    }
}

impl Views for ViewPixels {
    type Scratch = Scratch;

    fn bytes(&self) -> usize {
        self.augment.bytes() * self.views.len()
    }

    fn label(&self, _: u64) -> Result<Option<u32>, DataError> {
        Ok(None)
    }

    fn training(
        &self,
        key: ViewKey,
        scratch: &mut Scratch,
        weak: &mut [u8],
        _: Option<&mut [u8]>,
    ) -> Result<(), DataError> {
        self.evaluation(key.id, scratch, weak)
    }

    fn evaluation(&self, id: u64, scratch: &mut Scratch, out: &mut [u8]) -> Result<(), DataError> {
        let image = self.source.image(id);
        let image = image.map_err(|error| DataError::Sample { id, error: Box::new(error) })?;
        let augment = &*self.augment;
        for (view, out) in self.views.iter().zip(out.chunks_exact_mut(augment.bytes().max(1))) {
            let key = |n: u8| ViewKey { seed: SEED, epoch: u64::from(n), id };
            let made = match *view {
                FeatureView::Clean => Transform::evaluation(augment, &image, scratch, out),
                FeatureView::Weak(n) => Transform::weak(augment, &image, key(n), scratch, out),
                FeatureView::Strong(n) => Transform::strong(augment, &image, key(n), scratch, out),
            };
            made.map_err(|problem| DataError::View { id, problem })?;
        }
        Ok(())
    }
}
