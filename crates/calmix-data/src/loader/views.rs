//! Where the rows of a batch come from: images that are augmented, or a table of features.

use std::sync::Arc;

use calmix_core::rng::Seed;
use calmix_formats::image::Image;

use crate::augment::{Augment, Scratch};
use crate::dataset::Dataset;
use crate::error::DataError;

/// A source of decoded images: a prepared [`Dataset`], or [memory](super::InMemory).
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

/// The key of a view: it determines everything random about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewKey {
    /// The seed of the views.
    pub seed: Seed,
    /// The epoch of the visit.
    pub epoch: u64,
    pub id: u64,
}

/// Makes the rows of a batch: pixels of augmented images ([`ImageViews`]), or of the several views whose features are made
/// ([`ViewPixels`](crate::features::ViewPixels)).
///
/// A view is `bytes()` bytes and a pure function of its arguments; `scratch` never changes it.
pub trait Views: Send + Sync {
    /// Returns the bytes of a view.
    fn bytes(&self) -> usize;

    /// Returns a sample's class; `None` if it is unlabelled.
    fn label(&self, id: u64) -> Result<Option<u32>, DataError>;

    /// Makes the weak view of a sample, and the strong one if there is a buffer for it.
    fn training(
        &self,
        key: ViewKey,
        scratch: &mut Scratch,
        weak: &mut [u8],
        strong: Option<&mut [u8]>,
    ) -> Result<(), DataError>;

    /// Makes the view for evaluation, without randomness.
    fn evaluation(&self, id: u64, scratch: &mut Scratch, out: &mut [u8]) -> Result<(), DataError>;

    /// Starts to fetch the files of these samples, which will be needed soon.
    fn prefetch(&self, _ids: &[u64]) {}
}

/// Views of decoded images.
pub struct ImageViews {
    source: Arc<dyn ImageSource>,
    augment: Arc<Augment>,
}

impl ImageViews {
    /// Returns the views that `augment` makes of the images of `source`.
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

/// Returns the error of a sample that can be read, but has no such view.
pub(crate) fn no_view(id: u64) -> impl Fn(DataError) -> DataError {
    move |error| DataError::View { id, problem: error.into() }
}
