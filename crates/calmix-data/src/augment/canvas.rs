//! An image that is changed in place, and the buffers for it.

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
    /// Makes a canvas of `width·height·3` bytes; `None` if the number of bytes differs or the canvas is empty.
    pub fn new(width: u32, height: u32, bytes: &'a mut [u8]) -> Option<Self> {
        let (width, height) = (width as usize, height as usize);
        let (pixels, rest) = bytes.as_chunks_mut();
        let fits = width > 0 && rest.is_empty() && Some(pixels.len()) == width.checked_mul(height);
        (fits && height > 0).then_some(Self { width, height, pixels })
    }

    /// Makes a canvas of an image; `None` if the image is empty.
    pub fn from_image(image: &'a mut Image) -> Option<Self> {
        Self::new(image.width(), image.height(), image.pixels_mut())
    }

    /// Returns width and height.
    pub fn sides(&self) -> [usize; 2] {
        [self.width, self.height]
    }

    pub(super) fn rows(&mut self) -> impl Iterator<Item = &mut [Rgb]> {
        self.pixels.chunks_exact_mut(self.width)
    }
}

/// Buffers that a worker reuses for the next image, so that it stops allocating.
///
/// Their content between two calls never matters.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The pixels before an operation that reads and writes the canvas at once.
    pub(super) before: Vec<Rgb>,
    /// Sums of three rows for the smoothing kernel.
    pub(super) sums: Vec<u16>,
    /// One smoothed row.
    pub(super) row: Vec<u8>,
    /// The source column of each column of a window.
    pub(super) columns: Vec<usize>,
    /// The source row of each row of a window.
    pub(super) rows: Vec<usize>,
    /// A resized image.
    pub(super) resized: Vec<u8>,
    /// The buffers of a resize.
    pub(super) resize: ResizeScratch,
}

/// Overwrites `buffer` with `values`.
pub(super) fn refill<T: Copy>(buffer: &mut Vec<T>, values: &[T]) {
    buffer.clear();
    buffer.extend_from_slice(values);
}
