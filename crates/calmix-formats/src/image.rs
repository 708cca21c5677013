//! A decoded image.

use crate::memory_budget::Lease;

/// An RGB image, eight bits per channel, row by row from the top left.
#[derive(Debug)]
pub struct Image {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
    /// The share of the memory budget for large images, held while the image exists.
    _lease: Option<Lease>,
}

impl Clone for Image {
    /// Clones without a share of the memory budget: clones are made by a cache, which has its own limit.
    fn clone(&self) -> Self {
        Self { width: self.width, height: self.height, pixels: self.pixels.clone(), _lease: None }
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        (self.width, self.height, &self.pixels) == (other.width, other.height, &other.pixels)
    }
}

impl Eq for Image {}

impl Image {
    /// Makes an image of its pixels; `None` if they are not `width·height·3` bytes.
    pub fn new(width: u32, height: u32, pixels: Vec<u8>) -> Option<Self> {
        let bytes = u64::from(width).checked_mul(u64::from(height))?.checked_mul(3)?;
        (bytes == pixels.len() as u64).then_some(Self { width, height, pixels, _lease: None })
    }

    /// Makes an image of a single colour.
    pub fn filled(width: u32, height: u32, colour: [u8; 3]) -> Self {
        let pixels = colour.repeat(width as usize * height as usize);
        Self { width, height, pixels, _lease: None }
    }

    pub(crate) fn with_lease(self, lease: Option<Lease>) -> Self {
        Self { _lease: lease, ..self }
    }

    /// Returns the number of pixels per row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the number of rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Returns the channels of all pixels: R, G, B, R, …
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Returns the channels of all pixels for modification.
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_bytes_match_its_size() {
        assert!(Image::new(2, 2, vec![0; 12]).is_some());
        assert!(Image::new(2, 2, vec![0; 11]).is_none());
        assert!(Image::new(u32::MAX, u32::MAX, Vec::new()).is_none());
        assert_eq!(Image::filled(2, 1, [1, 2, 3]).pixels(), [1, 2, 3, 1, 2, 3]);
    }
}
