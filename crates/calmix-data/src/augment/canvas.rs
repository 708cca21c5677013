//! An image that is changed in place, and the buffers that this needs.

use calmix_formats::image::Image;

use super::resize::{ResizeScratch, Rgb};

/// An RGB image in a borrowed buffer, changed in place.
#[derive(Debug)]
pub struct Canvas<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: &'a mut [Rgb],
}

impl<'a> Canvas<'a> {
    /// A canvas of `width·height·3` bytes; `None` if their number differs or the canvas is empty.
    pub fn new(width: u32, height: u32, bytes: &'a mut [u8]) -> Option<Self> {
        let (width, height) = (width as usize, height as usize);
        let (pixels, rest) = bytes.as_chunks_mut();
        let fits = width > 0 && rest.is_empty() && Some(pixels.len()) == width.checked_mul(height);
        (fits && height > 0).then_some(Self { width, height, pixels })
    }

    /// A canvas of an image; `None` if the image is empty.
    pub fn from_image(image: &'a mut Image) -> Option<Self> {
        Self::new(image.width(), image.height(), image.pixels_mut())
    }

    /// Width and height.
    pub fn sides(&self) -> [usize; 2] {
        [self.width, self.height]
    }

    pub(super) fn rows(&mut self) -> impl Iterator<Item = &mut [Rgb]> {
        self.pixels.chunks_exact_mut(self.width)
    }
}

/// Buffers that are used again from one image to the next, so that a worker stops allocating.
///
/// What they hold between two calls never matters.
#[derive(Debug, Default)]
pub struct Scratch {
    /// What was on the canvas before an operation that reads it while it writes.
    pub(super) before: Vec<Rgb>,
    /// Sums of three rows, for the smoothing kernel.
    pub(super) sums: Vec<u16>,
    /// One smoothed row.
    pub(super) row: Vec<u8>,
    /// Where each column of a window comes from.
    pub(super) columns: Vec<usize>,
    /// Where each row of a window comes from.
    pub(super) rows: Vec<usize>,
    /// A resized image.
    pub(super) resized: Vec<u8>,
    /// The memory of a resize.
    pub(super) resize: ResizeScratch,
}

/// Overwrites `buffer` with `values`.
pub(super) fn refill<T: Copy>(buffer: &mut Vec<T>, values: &[T]) {
    buffer.clear();
    buffer.extend_from_slice(values);
}
