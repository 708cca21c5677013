//! The sources of a batch's rows: augmented images, or several views for feature extraction.

use std::sync::Arc;

use calmix_core::rng::Seed;
use calmix_formats::image::Image;

use crate::augment::{Augment, Scratch};
use crate::dataset::Dataset;
use crate::error::DataError;

/// A source of decoded images: a prepared [`Dataset`], or [memory](super::InMemory).
pub trait ImageSource: Send + Sync {
    /// Decodes a sample; the same id always gives the same image.
    fn image(&self, id: u64) -> Result<Image, DataError>;

    /// Returns the class of a sample; `None` if it is unlabelled.
    fn label(&self, id: u64) -> Result<Option<u32>, DataError>;

    /// Returns the name of a sample for the user.
    fn name(&self, id: u64) -> Result<String, DataError> {
        Ok(format!("sample {id}"))
    }

    /// Starts fetching the files of these samples, which will be needed soon.
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

/// A shared source.
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

/// The key of a view, which determines its randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewKey {
    /// The seed of the views.
    pub seed: Seed,
    /// The epoch of the visit.
    pub epoch: u64,
    pub id: u64,
}

/// Makes the rows of a batch: augmented images ([`ImageViews`]), or the views for feature extraction
/// ([`ViewPixels`](crate::features::ViewPixels)).
///
/// A view has `bytes()` bytes and is a pure function of its arguments; `scratch` never affects it.
pub trait Views: Send + Sync {
    /// Returns the number of bytes of a view.
    fn bytes(&self) -> usize;

    /// Returns the class of a sample; `None` if it is unlabelled.
    fn label(&self, id: u64) -> Result<Option<u32>, DataError>;

    /// Makes the weak view of a sample, and the strong one if `strong` is given.
    fn training(
        &self,
        key: ViewKey,
        scratch: &mut Scratch,
        weak: &mut [u8],
        strong: Option<&mut [u8]>,
    ) -> Result<(), DataError>;

    /// Makes the view for evaluation, without randomness.
    fn evaluation(&self, id: u64, scratch: &mut Scratch, out: &mut [u8]) -> Result<(), DataError>;

    /// Starts fetching the files of these samples, which will be needed soon.
    fn prefetch(&self, _ids: &[u64]) {}
}

/// Views of decoded images.
pub struct ImageViews {
    source: Arc<dyn ImageSource>,
    augment: Arc<Augment>,
}

impl ImageViews {
    /// Makes views of the images of `source` with `augment`.
    pub fn new(source: Arc<dyn ImageSource>, augment: Arc<Augment>) -> Arc<Self> {
        Arc::new(Self { source, augment })
    }
}

impl Views for ImageViews {
    fn bytes(&self) -> usize {
        self.augment.bytes()
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        self.source.label(id).map_err(|error| DataError::Sample { id, error: Box::new(error) })
    }

    fn training(
        &self,
        ViewKey { seed, epoch, id }: ViewKey,
        scratch: &mut Scratch,
        weak: &mut [u8],
        strong: Option<&mut [u8]>,
    ) -> Result<(), DataError> {
        let image = image(&*self.source, id)?;
        self.augment.weak(&image, seed, epoch, id, scratch, weak).map_err(no_view(id))?;
        let Some(strong) = strong else { return Ok(()) };
        self.augment.strong(&image, seed, epoch, id, scratch, strong).map_err(no_view(id))
    }

    fn evaluation(&self, id: u64, scratch: &mut Scratch, out: &mut [u8]) -> Result<(), DataError> {
        let image = image(&*self.source, id)?;
        self.augment.evaluation(&image, scratch, out).map_err(no_view(id))
    }

    fn prefetch(&self, ids: &[u64]) {
        self.source.prefetch(ids);
    }
}

/// Decodes a sample; the error names it.
pub(crate) fn image(source: &dyn ImageSource, id: u64) -> Result<Image, DataError> {
    source.image(id).map_err(|error| DataError::Sample { id, error: Box::new(error) })
}

/// Returns the error for a sample that can be read but has no such view.
pub(crate) fn no_view(id: u64) -> impl Fn(DataError) -> DataError {
    move |error| DataError::View { id, problem: error.into() }
}
