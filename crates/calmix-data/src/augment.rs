//! The weak and the strong view of a sample, and the one for evaluation.
//!
//! A view is a pure function of the image, the seed, the epoch and the sample's id: which worker makes it,
//! and when, changes nothing. Everything random is drawn first, as plain data ([`Frame`], [`Op`] with its
//! magnitude, [`Hole`]), and then carried out; each pixel operation gives the bytes that Pillow gives.
//!
//! ```
//! use calmix_core::rng::Seed;
//! use calmix_data::augment::{Augment, Scratch};
//! use calmix_formats::image::Image;
//!
//! let augment = Augment::usb(32);
//! let image = Image::filled(32, 32, [200, 100, 50]);
//! let mut scratch = Scratch::default();
//! let mut weak = vec![0; augment.bytes()];
//! augment.weak(&image, Seed(7), 0, 42, &mut scratch, &mut weak)?;
//! assert_eq!(weak, image.pixels());
//! # Ok::<(), calmix_data::error::DataError>(())
//! ```

mod affine;
mod canvas;
mod cutout;
mod enhance;
mod frame;
mod geometry;
mod op;
mod preset;
mod rand_augment;
mod resize;
mod table;

use calmix_core::rng::{Domain, Seed};
use calmix_formats::image::Image;
use serde::{Deserialize, Serialize};

pub use canvas::{Canvas, Scratch};
pub use cutout::{Cutout, Hole};
pub use frame::{Frame, Rect};
use geometry::MAX_SIZE;
pub use geometry::{First, Geometry};
pub use op::Op;
pub use rand_augment::RandAugment;
pub use resize::Filter;
pub(crate) use resize::resized;

use crate::error::DataError;

/// The augmentation of a dataset: its weak, strong and evaluation views.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Augment {
    /// Pixels per side of every view.
    pub size: u32,
    /// The weak view.
    pub weak: Geometry,
    /// The strong view.
    pub strong: Strong,
    /// The view for evaluation.
    pub evaluation: EvalView,
    /// The filter for resizing images.
    pub filter: Filter,
}

/// A strong view: its own geometry, then RandAugment, then cutout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Strong {
    /// Its geometry, drawn anew.
    pub geometry: Geometry,
    /// The operations.
    pub rand_augment: RandAugment,
    pub cutout: Cutout,
}

/// The view for evaluation: the shorter side is resized, then the middle is cut out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EvalView {
    /// Pixels of the shorter side before the cut. If this equals the size of the view, a square image is not cropped.
    pub resize: u32,
}

impl Augment {
    /// Returns the number of bytes of a view: red, green and blue of each pixel, row by row.
    pub fn bytes(&self) -> usize {
        3 * self.size as usize * self.size as usize
    }

    /// Checks the settings. No setting, valid or not, makes a view panic.
    ///
    /// # Errors
    ///
    /// [`DataError::ViewSetting`] names the first invalid setting.
    pub fn check(&self) -> Result<(), DataError> {
        let wrong = |what: String| Err(DataError::ViewSetting(what));
        if self.size == 0 || self.size > MAX_SIZE {
            return wrong(format!("size is {}; it must be from 1 to {MAX_SIZE}", self.size));
        }
        if self.evaluation.resize < self.size || self.evaluation.resize > MAX_SIZE {
            let EvalView { resize } = self.evaluation;
            return wrong(format!(
                "evaluation.resize is {resize}; it must be from {} to {MAX_SIZE}",
                self.size
            ));
        }
        self.weak.check("weak", self.size)?;
        self.strong.geometry.check("strong.geometry", self.size)?;
        match self.strong.cutout {
            Cutout::Random { share, .. } if !(0.0..=1.0).contains(&share) => {
                wrong(format!("strong.cutout.random.share is {share}; it must be from 0 to 1"))
            }
            _ => Ok(()),
        }
    }

    /// Makes the weak view of sample `id` in `epoch` and writes it into `out`, row by row.
    ///
    /// # Errors
    ///
    /// The image is empty, or `out` is not [`bytes`](Self::bytes) long.
    pub fn weak(
        &self,
        image: &Image,
        seed: Seed,
        epoch: u64,
        id: u64,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), DataError> {
        let mut stream = seed.stream(Domain::Weak, epoch, id);
        self.framed(image, |sides| self.weak.draw(self.size, sides, &mut stream), scratch, out).map(drop)
    }

    /// Makes the strong view of sample `id` in `epoch` and writes it into `out`, row by row.
    ///
    /// # Errors
    ///
    /// The image is empty, or `out` is not [`bytes`](Self::bytes) long.
    pub fn strong(
        &self,
        image: &Image,
        seed: Seed,
        epoch: u64,
        id: u64,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), DataError> {
        let mut stream = seed.stream(Domain::Strong, epoch, id);
        let Strong { geometry, rand_augment, cutout } = &self.strong;
        let draw = |sides| geometry.draw(self.size, sides, &mut stream);
        let mut canvas = self.framed(image, draw, scratch, out)?;
        let sides = canvas.sides();
        for (op, magnitude) in rand_augment.draw(sides, &mut stream) {
            op.apply(magnitude, &mut canvas, scratch);
        }
        if let Some((hole, colour)) = cutout.draw(sides, &mut stream) {
            hole.fill(&mut canvas, colour);
        }
        Ok(())
    }

    /// Makes the view for evaluation and writes it into `out`, row by row.
    ///
    /// # Errors
    ///
    /// The image is empty, or `out` is not [`bytes`](Self::bytes) long.
    pub fn evaluation(&self, image: &Image, scratch: &mut Scratch, out: &mut [u8]) -> Result<(), DataError> {
        let draw = |sides| geometry::middle(self.size, self.evaluation.resize, sides);
        self.framed(image, draw, scratch, out).map(drop)
    }

    fn framed<'a>(
        &self,
        image: &Image,
        draw: impl FnOnce([u32; 2]) -> Frame,
        scratch: &mut Scratch,
        out: &'a mut [u8],
    ) -> Result<Canvas<'a>, DataError> {
        let [width, height] = [image.width(), image.height()];
        let (size, expected, found) = (self.size, self.bytes(), out.len());
        let mut canvas =
            Canvas::new(size, size, out).ok_or(DataError::ViewLength { size, expected, found })?;
        if width == 0 || height == 0 || !draw([width, height]).show(image, self.filter, &mut canvas, scratch)
        {
            return Err(DataError::EmptyImage { width, height });
        }
        Ok(canvas)
    }
}
