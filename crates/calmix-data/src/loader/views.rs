//! Where the rows of a batch come from: images that are augmented, or a table of features.

use std::sync::Arc;

use calmix_formats::image::Image;

use super::transform::{Transform, ViewKey};
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

/// The views of samples, as the rows of a batch: pixels of augmented images ([`ImageViews`]), or of the several
/// views whose features are made ([`ViewPixels`](crate::features::ViewPixels)).
///
/// A view is `bytes()` bytes and a pure function of its arguments.
pub trait Views: Send + Sync {
    /// Buffers that a worker keeps from sample to sample; they never change a view.
    type Scratch: Default + Send;

    /// Bytes of a view.
    fn bytes(&self) -> usize;

    /// A sample's class; `None` if it is unlabelled.
    ///
    /// # Errors
    /// If the label cannot be read.
    fn label(&self, id: u64) -> Result<Option<u32>, DataError>;

    /// The weak view of a sample, and the strong one if there is a buffer for it.
    ///
    /// # Errors
    /// If the sample cannot be read, or has no such view.
    fn training(
        &self,
        key: ViewKey,
        scratch: &mut Self::Scratch,
        weak: &mut [u8],
        strong: Option<&mut [u8]>,
    ) -> Result<(), DataError>;

    /// The view for evaluation, without randomness.
    ///
    /// # Errors
    /// If the sample cannot be read, or has no such view.
    fn evaluation(&self, id: u64, scratch: &mut Self::Scratch, out: &mut [u8]) -> Result<(), DataError>;

    /// Starts to fetch the files of these samples, which will be needed soon.
    fn prefetch(&self, _ids: &[u64]) {}
}

/// Views of decoded images.
pub struct ImageViews<T> {
    source: Arc<dyn ImageSource>,
    transform: Arc<T>,
}

impl<T> std::fmt::Debug for ImageViews<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageViews").finish_non_exhaustive()
    }
}

impl<T: Transform> ImageViews<T> {
    /// The views that `transform` makes of the images of `source`.
    pub fn new(source: Arc<dyn ImageSource>, transform: Arc<T>) -> Arc<Self> {
        Arc::new(Self { source, transform })
    }
}

impl<T: Transform> Views for ImageViews<T> {
    type Scratch = T::Scratch;

    fn bytes(&self) -> usize {
        self.transform.bytes()
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        self.source.label(id).map_err(|error| DataError::Sample { id, error: Box::new(error) })
    }

    fn training(
        &self,
        key: ViewKey,
        scratch: &mut T::Scratch,
        weak: &mut [u8],
        strong: Option<&mut [u8]>,
    ) -> Result<(), DataError> {
        let id = key.id;
        let no_view = |problem| DataError::View { id, problem };
        let image = self.source.image(id);
        let image = image.map_err(|error| DataError::Sample { id, error: Box::new(error) })?;
        self.transform.weak(&image, key, scratch, weak).map_err(no_view)?;
        strong.map_or(Ok(()), |out| self.transform.strong(&image, key, scratch, out).map_err(no_view))
    }

    fn evaluation(&self, id: u64, scratch: &mut T::Scratch, out: &mut [u8]) -> Result<(), DataError> {
        let image = self.source.image(id);
        let image = image.map_err(|error| DataError::Sample { id, error: Box::new(error) })?;
        self.transform.evaluation(&image, scratch, out).map_err(|problem| DataError::View { id, problem })
    }

    fn prefetch(&self, ids: &[u64]) {
        self.source.prefetch(ids);
    }
}
