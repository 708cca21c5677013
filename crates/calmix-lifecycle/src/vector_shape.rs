//! How many vectors a sample has, and how long they are.

use calmix_data::dataset::Dataset;
use calmix_data::manifest::Encoding;

use crate::error::LifecycleError;

/// The vectors of a sample: their number and their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorShape {
    /// Numbers of a vector.
    pub width: usize,
    /// Vectors of a sample: the clean one, then weak and strong views if there are more.
    pub views: usize,
}

impl VectorShape {
    /// The shape of the vectors of a dataset.
    ///
    /// # Errors
    /// If it is a dataset of images.
    pub fn of(dataset: &Dataset) -> Result<Self, LifecycleError> {
        match dataset.header().encoding {
            Encoding::Vectors { width, views, .. } => {
                Ok(Self { width: width as usize, views: views as usize })
            }
            _ => Err(LifecycleError::Unsupported(
                "the dataset holds images, not vectors; train on it with `calmix train --data FOLDER`"
                    .to_owned(),
            )),
        }
    }
}
