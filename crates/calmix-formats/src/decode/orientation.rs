//! The EXIF orientation of an image.
//!
//! Written by hand: one tag takes forty lines, and a full EXIF crate would parse far more of a hostile file.

use crate::image::Image;

/// One of the eight orientations, by its EXIF number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orientation(u8);

impl Orientation {
    /// The orientation as stored.
    pub(super) const UPRIGHT: Self = Self(1);

    /// Reads the orientation from an EXIF block, with or without its `Exif\0\0`. Unreadable blocks mean upright, as in
    /// Pillow: a damaged EXIF block does not make the image unreadable.
    pub(super) fn from_exif(exif: &[u8]) -> Self {
        find(exif.strip_prefix(b"Exif\0\0").unwrap_or(exif)).map_or(Self::UPRIGHT, Self)
    }

    /// Returns whether width and height are swapped.
    pub(super) fn swaps(self) -> bool {
        self.0 >= 5
    }

    /// Rotates the image upright.
    pub(super) fn upright(self, image: Image) -> Image {
        if self.0 == 1 {
            return image;
        }
        let (width, height) = (image.width() as usize, image.height() as usize);
        let source = image.pixels();
        let (columns, rows) = if self.swaps() { (height, width) } else { (width, height) };
        let mut pixels = Vec::with_capacity(source.len());
        for y in 0..rows {
            for x in 0..columns {
                let (from_x, from_y) = match self.0 {
                    2 => (width - 1 - x, y),
                    3 => (width - 1 - x, height - 1 - y),
                    4 => (x, height - 1 - y),
                    5 => (y, x),
                    6 => (y, height - 1 - x),
                    7 => (width - 1 - y, height - 1 - x),
                    _ => (width - 1 - y, x),
                };
                let at = 3 * (from_y * width + from_x);
                pixels.extend_from_slice(&source[at..at + 3]);
            }
        }
        Image::new(columns as u32, rows as u32, pixels).unwrap_or(image)
    }
}

/// Finds the orientation in the first directory of a TIFF block.
fn find(tiff: &[u8]) -> Option<u8> {
    let little = match tiff.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let two: [u8; 2] = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) })
    };
    let long = |at: usize| {
        let four: [u8; 4] = tiff.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    };
    let directory = long(4)? as usize;
    for entry in 0..usize::from(short(directory)?) {
        let at = directory.checked_add(2 + 12 * entry)?;
        if short(at)? != 0x0112 {
            continue;
        }
        let value = match short(at + 2)? {
            1 => u32::from(*tiff.get(at + 8)?),
            3 => u32::from(short(at + 8)?),
            4 => long(at + 8)?,
            _ => return None,
        };
        return u8::try_from(value).ok().filter(|value| (1..=8).contains(value));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_exif_is_upright() {
        let exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
        assert_eq!(Orientation::from_exif(exif), Orientation(6));
        for length in 0..exif.len() - 2 {
            assert_eq!(Orientation::from_exif(&exif[..length]), Orientation::UPRIGHT);
        }
        let far = b"II*\0\xff\xff\xff\xff\x01\0";
        assert_eq!(Orientation::from_exif(far), Orientation::UPRIGHT);
        let ninth = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0";
        assert_eq!(Orientation::from_exif(ninth), Orientation::UPRIGHT);
    }
}
