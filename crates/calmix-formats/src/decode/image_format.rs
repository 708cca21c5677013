//! The interface of a supported image format.

use super::orientation::Orientation;
use super::problem::DecodeProblem;
use crate::image::Image;

pub(super) trait ImageFormat {
    /// Reads what the header declares.
    fn head(&self, bytes: &[u8]) -> Result<Head, DecodeProblem>;

    /// Decodes to RGB at the size in the header, or at a fraction of it whose shorter side still has `side` pixels.
    fn pixels(&self, bytes: &[u8], head: Head, side: u32) -> Result<Image, DecodeProblem>;
}

/// The properties that the header of an image declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) orientation: Orientation,
    /// The end of the image in its file.
    pub(super) end: usize,
}

/// Makes an image of the `pixels` of an external decoder, checking their number.
pub(super) fn image(
    kind: &'static str,
    width: u32,
    height: u32,
    pixels: Vec<u8>,
) -> Result<Image, DecodeProblem> {
    Image::new(width, height, pixels).ok_or_else(|| {
        DecodeProblem::Damaged(kind, "the number of its pixels does not match its header".into())
    })
}
