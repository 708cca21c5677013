//! The pixels of several views of a sample in one row, as input of a backbone.

use std::sync::Arc;

use calmix_core::rng::Seed;

use super::FeatureView;
use crate::augment::{Augment, Scratch};
use crate::error::DataError;
use crate::loader::{ImageSource, ViewKey, Views, image, no_view};

/// The seed of the cached views, which all runs share.
const SEED: Seed = Seed(0);

/// Several views of each image in one row, loaded by the loader for evaluation.
pub struct ViewPixels {
    pub source: Arc<dyn ImageSource>,
    /// The augmentation.
    pub augment: Arc<Augment>,
    /// The views of each row, in order.
    pub views: Vec<FeatureView>,
}

impl Views for ViewPixels {
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
        let image = image(&*self.source, id)?;
        let augment = &*self.augment;
        for (view, out) in self.views.iter().zip(out.chunks_exact_mut(augment.bytes().max(1))) {
            let made = match *view {
                FeatureView::Clean => augment.evaluation(&image, scratch, out),
                FeatureView::Weak(n) => augment.weak(&image, SEED, n.into(), id, scratch, out),
                FeatureView::Strong(n) => augment.strong(&image, SEED, n.into(), id, scratch, out),
            };
            made.map_err(no_view(id))?;
        }
        Ok(())
    }
}
