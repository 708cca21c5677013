//! A decoded image.

/// An RGB image, eight bits a channel, row by row from the top left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Picture {
    /// A picture from its pixels; none if they are not `width·height·3` bytes.
    pub fn new(width: u32, height: u32, pixels: Vec<u8>) -> Option<Self> {
        let bytes = u64::from(width).checked_mul(u64::from(height))?.checked_mul(3)?;
        (bytes == pixels.len() as u64).then_some(Self { width, height, pixels })
    }

    /// A picture of one colour.
    pub fn filled(width: u32, height: u32, colour: [u8; 3]) -> Self {
        let pixels = colour.repeat(width as usize * height as usize);
        Self { width, height, pixels }
    }

    /// Pixels in a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// All channels of all pixels: R, G, B, R, …
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The same, to change.
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }

    /// The pixels as an owned buffer.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_as_many_bytes_as_its_size_says() {
        assert!(Picture::new(2, 2, vec![0; 12]).is_some());
        assert!(Picture::new(2, 2, vec![0; 11]).is_none());
        assert!(Picture::new(u32::MAX, u32::MAX, Vec::new()).is_none());
        assert_eq!(Picture::filled(2, 1, [1, 2, 3]).pixels(), [1, 2, 3, 1, 2, 3]);
    }
}
