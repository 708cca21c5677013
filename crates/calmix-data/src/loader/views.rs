//! What is seen of a picture.

use calmix_core::rng::Seed;

use crate::augment::{Augment, AugmentError, Scratch};
use crate::error::Problem;
use crate::picture::Picture;

/// Everything random about a view is fixed by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The seed of the views.
    pub seed: Seed,
    /// Which visit of the sample.
    pub epoch: u64,
    /// The sample.
    pub id: u64,
}

/// How the views of a sample are made: [`Augment`], or nothing ([`AsIs`]).
///
/// A view is `bytes()` bytes, R, G, B, row by row, and a pure function of its arguments.
pub trait Views: Send + Sync {
    /// Memory that a worker keeps from sample to sample; it never changes what is seen.
    type Scratch: Default + Send;

    /// Bytes of a view.
    fn bytes(&self) -> usize;

    /// The weak view.
    ///
    /// # Errors
    /// If the picture has no such view.
    fn weak(
        &self,
        picture: &Picture,
        seen: Sighting,
        scratch: &mut Self::Scratch,
        out: &mut [u8],
    ) -> Result<(), Problem>;

    /// The strong view.
    ///
    /// # Errors
    /// If the picture has no such view.
    fn strong(
        &self,
        picture: &Picture,
        seen: Sighting,
        scratch: &mut Self::Scratch,
        out: &mut [u8],
    ) -> Result<(), Problem>;

    /// The view for evaluation, without randomness.
    ///
    /// # Errors
    /// If the picture has no such view.
    fn evaluation(
        &self,
        picture: &Picture,
        scratch: &mut Self::Scratch,
        out: &mut [u8],
    ) -> Result<(), Problem>;
}

impl Views for Augment {
    type Scratch = Scratch;

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn weak(
        &self,
        picture: &Picture,
        seen: Sighting,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), Problem> {
        let Sighting { seed, epoch, id } = seen;
        Self::weak(self, picture, seed, epoch, id, scratch, out).map_err(|error| problem(&error))
    }

    fn strong(
        &self,
        picture: &Picture,
        seen: Sighting,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), Problem> {
        let Sighting { seed, epoch, id } = seen;
        Self::strong(self, picture, seed, epoch, id, scratch, out).map_err(|error| problem(&error))
    }

    fn evaluation(&self, picture: &Picture, scratch: &mut Scratch, out: &mut [u8]) -> Result<(), Problem> {
        Self::evaluation(self, picture, scratch, out).map_err(|error| problem(&error))
    }
}

/// An empty picture is a corrupt sample; everything else is a mistake in the settings.
fn problem(error: &AugmentError) -> Problem {
    match error {
        AugmentError::Empty { .. } => Problem::Format(error.to_string()),
        _ => Problem::Content(error.to_string()),
    }
}

/// No augmentation: every view is the picture itself, which must have this size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsIs {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Views for AsIs {
    type Scratch = ();

    fn bytes(&self) -> usize {
        (self.width as usize).saturating_mul(self.height as usize).saturating_mul(3)
    }

    fn weak(&self, picture: &Picture, _: Sighting, scratch: &mut (), out: &mut [u8]) -> Result<(), Problem> {
        self.evaluation(picture, scratch, out)
    }

    fn strong(
        &self,
        picture: &Picture,
        _: Sighting,
        scratch: &mut (),
        out: &mut [u8],
    ) -> Result<(), Problem> {
        self.evaluation(picture, scratch, out)
    }

    fn evaluation(&self, picture: &Picture, (): &mut (), out: &mut [u8]) -> Result<(), Problem> {
        let Self { width, height } = *self;
        if (picture.width(), picture.height()) != (width, height) || out.len() != picture.pixels().len() {
            let found = (picture.width(), picture.height());
            return Err(Problem::Content(format!(
                "a picture of {} × {} pixels where all have {width} × {height}",
                found.0, found.1
            )));
        }
        out.copy_from_slice(picture.pixels());
        Ok(())
    }
}
