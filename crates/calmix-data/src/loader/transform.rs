//! The transforms that make views of an image.

use calmix_core::rng::Seed;
use calmix_formats::error::FormatProblem;
use calmix_formats::image::Image;

use crate::augment::{Augment, Scratch};

/// The key of a view: it determines everything random about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewKey {
    /// The seed of the views.
    pub seed: Seed,
    /// The epoch of the visit.
    pub epoch: u64,
    /// The sample.
    pub id: u64,
}

/// How the views of a sample are made: by [`Augment`], or without change ([`AsIs`]).
///
/// A view is `bytes()` bytes, R, G, B, row by row, and a pure function of its arguments.
pub trait Transform: Send + Sync {
    /// Buffers that a worker keeps from sample to sample; they never change a view.
    type Scratch: Default + Send;

    /// Bytes of a view.
    fn bytes(&self) -> usize;

    /// The weak view.
    ///
    /// # Errors
    /// If the image has no such view.
    fn weak(
        &self,
        image: &Image,
        key: ViewKey,
        scratch: &mut Self::Scratch,
        out: &mut [u8],
    ) -> Result<(), FormatProblem>;

    /// The strong view.
    ///
    /// # Errors
    /// If the image has no such view.
    fn strong(
        &self,
        image: &Image,
        key: ViewKey,
        scratch: &mut Self::Scratch,
        out: &mut [u8],
    ) -> Result<(), FormatProblem>;

    /// The view for evaluation, without randomness.
    ///
    /// # Errors
    /// If the image has no such view.
    fn evaluation(
        &self,
        image: &Image,
        scratch: &mut Self::Scratch,
        out: &mut [u8],
    ) -> Result<(), FormatProblem>;
}

impl Transform for Augment {
    type Scratch = Scratch;

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn weak(
        &self,
        image: &Image,
        key: ViewKey,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), FormatProblem> {
        let ViewKey { seed, epoch, id } = key;
        Self::weak(self, image, seed, epoch, id, scratch, out).map_err(FormatProblem::from)
    }

    fn strong(
        &self,
        image: &Image,
        key: ViewKey,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), FormatProblem> {
        let ViewKey { seed, epoch, id } = key;
        Self::strong(self, image, seed, epoch, id, scratch, out).map_err(FormatProblem::from)
    }

    fn evaluation(&self, image: &Image, scratch: &mut Scratch, out: &mut [u8]) -> Result<(), FormatProblem> {
        Self::evaluation(self, image, scratch, out).map_err(FormatProblem::from)
    }
}

/// No augmentation: every view is the image itself, which must have this size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsIs {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Transform for AsIs {
    type Scratch = ();

    fn bytes(&self) -> usize {
        (self.width as usize).saturating_mul(self.height as usize).saturating_mul(3)
    }

    fn weak(&self, image: &Image, _: ViewKey, scratch: &mut (), out: &mut [u8]) -> Result<(), FormatProblem> {
        self.evaluation(image, scratch, out)
    }

    fn strong(
        &self,
        image: &Image,
        _: ViewKey,
        scratch: &mut (),
        out: &mut [u8],
    ) -> Result<(), FormatProblem> {
        self.evaluation(image, scratch, out)
    }

    fn evaluation(&self, image: &Image, (): &mut (), out: &mut [u8]) -> Result<(), FormatProblem> {
        let Self { width, height } = *self;
        if (image.width(), image.height()) != (width, height) || out.len() != image.pixels().len() {
            let found = (image.width(), image.height());
            return Err(FormatProblem::Content(format!(
                "the image has {} × {} pixels, but all others have {width} × {height}",
                found.0, found.1
            )));
        }
        out.copy_from_slice(image.pixels());
        Ok(())
    }
}
