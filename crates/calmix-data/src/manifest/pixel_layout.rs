//! The layout of raw pixels, and its conversion to an image.

use calmix_formats::image::Image;
use serde::{Deserialize, Serialize};

/// The layout of raw pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PixelLayout {
    /// One byte per pixel, row by row (idx).
    Grey,
    /// A red, a green and a blue plane, each row by row (CIFAR).
    Planes,
    /// A red, a green and a blue plane, each column by column (STL-10, SVHN).
    PlanesByColumn,
}

impl PixelLayout {
    /// Returns the number of bytes of a sample of this size; `None` on overflow.
    pub fn bytes(self, width: u32, height: u32) -> Option<u64> {
        let pixels = u64::from(width).checked_mul(u64::from(height))?;
        match self {
            Self::Grey => Some(pixels),
            Self::Planes | Self::PlanesByColumn => pixels.checked_mul(3),
        }
    }

    /// Converts raw bytes to an image; `None` if their number does not match the size. Grey becomes RGB with three equal
    /// channels.
    ///
    /// ```
    /// use calmix_data::manifest::PixelLayout;
    ///
    /// // Two pixels side by side: a red plane, a green plane, a blue plane.
    /// let image = PixelLayout::Planes.image(2, 1, &[1, 2, 3, 4, 5, 6]).unwrap();
    /// assert_eq!(image.pixels(), [1, 3, 5, 2, 4, 6]);
    /// ```
    pub fn image(self, width: u32, height: u32, bytes: &[u8]) -> Option<Image> {
        if self.bytes(width, height)? != bytes.len() as u64 {
            return None;
        }
        let pixels = match self {
            Self::Grey => bytes.iter().flat_map(|&grey| [grey; 3]).collect(),
            Self::Planes => interleaved(bytes),
            Self::PlanesByColumn => interleaved(&by_row(bytes, width as usize, height as usize)),
        };
        Image::new(width, height, pixels)
    }
}

/// Interleaves three planes to R, G, B, R, …
fn interleaved(planes: &[u8]) -> Vec<u8> {
    let (red, rest) = planes.split_at(planes.len() / 3);
    let (green, blue) = rest.split_at(red.len());
    red.iter().zip(green).zip(blue).flat_map(|((&r, &g), &b)| [r, g, b]).collect()
}

/// Transposes planes from column order to row order.
fn by_row(planes: &[u8], width: usize, height: usize) -> Vec<u8> {
    let mut turned = Vec::with_capacity(planes.len());
    for plane in planes.chunks_exact((width * height).max(1)) {
        for row in 0..height {
            turned.extend(plane.iter().skip(row).step_by(height));
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layout_puts_every_byte_in_its_place() {
        // Three columns, two rows; pixel (x, y) of channel c is 100·c + 10·y + x.
        let expected: Vec<u8> = [0, 1, 2, 10, 11, 12].iter().flat_map(|&p| [p, 100 + p, 200 + p]).collect();
        let rows = [0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112, 200, 201, 202, 210, 211, 212];
        let columns = [0, 10, 1, 11, 2, 12, 100, 110, 101, 111, 102, 112, 200, 210, 201, 211, 202, 212];
        assert_eq!(PixelLayout::Planes.image(3, 2, &rows).unwrap().pixels(), expected);
        assert_eq!(PixelLayout::PlanesByColumn.image(3, 2, &columns).unwrap().pixels(), expected);
        assert_eq!(PixelLayout::Grey.image(2, 1, &[7, 9]).unwrap().pixels(), [7, 7, 7, 9, 9, 9]);
    }

    #[test]
    fn raw_bytes_of_another_size_are_refused() {
        for layout in [PixelLayout::Grey, PixelLayout::Planes, PixelLayout::PlanesByColumn] {
            assert!(layout.image(3, 2, &[0; 17]).is_none());
            assert!(layout.image(u32::MAX, u32::MAX, &[0; 6]).is_none());
            assert!(layout.image(0, 5, &[]).is_some_and(|image| image.pixels().is_empty()));
        }
    }
}
