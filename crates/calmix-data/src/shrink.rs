//! Shrinks large images once: decoding a photo of twelve megapixels takes a tenth of a second, which a run would spend at
//! every visit.
//!
//! The rule has one parameter: an image with a longer shorter side is resized to that shorter side with Pillow's bilinear
//! filter, which widens as the image shrinks; every other image stays as it is. [`prepare`](crate::prepare) applies the rule
//! and stores the pixels in the prepared folder; prediction applies the same rule, so the same file always gives the same
//! pixels.

use calmix_formats::decode::{DecodeLimits, decode_at_least};
use calmix_formats::image::Image;

use crate::augment::{Filter, resized};
use crate::error::DataError;

/// The default shorter side of shrunk images: more than twice the usual network input of 224 pixels, so that a random crop
/// still has that many pixels.
pub const DEFAULT_SIDE: u32 = 512;

/// The signature of a stored shrunk image; no image format begins with it.
const MAGIC: [u8; 8] = *b"\x00CMXRGB8";
/// Bytes before the pixels: the signature, width, height, and the CRC-32C of the file that the image comes from.
const HEAD: usize = 20;

/// Shrinks an image whose shorter side exceeds `side`; 0 keeps every image.
pub fn shrunk(image: Image, side: u32) -> Image {
    let (width, height) = (image.width(), image.height());
    let shorter = width.min(height);
    if side == 0 || shorter <= side {
        return image;
    }
    let scaled = |length: u32| {
        let length = (u64::from(length) * u64::from(side) + u64::from(shorter / 2)) / u64::from(shorter);
        length as u32
    };
    resized(&image, scaled(width), scaled(height), Filter::Bilinear)
}

/// Decodes an image and shrinks it. A JPEG is decoded at reduced size where that is enough ([`decode_at_least`]).
pub fn decode_shrunk(bytes: &[u8], limits: &DecodeLimits, side: u32) -> Result<Image, DataError> {
    let at_least = if side == 0 { u32::MAX } else { side };
    Ok(shrunk(decode_at_least(bytes, limits, at_least)?, side))
}

/// Encodes a shrunk image for storage, with the checksum of the `original` file. Pixels are stored raw, so that reading
/// needs no decoder and does not depend on the version of one.
pub(crate) fn stored(image: &Image, original: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + image.pixels().len());
    bytes.extend(MAGIC);
    bytes.extend(image.width().to_le_bytes());
    bytes.extend(image.height().to_le_bytes());
    bytes.extend(crc32c::crc32c(original).to_le_bytes());
    bytes.extend(image.pixels());
    bytes
}

/// Decodes a stored image, and the checksum of its original file; `None` if `bytes` are something else.
pub(crate) fn from_stored(bytes: &[u8]) -> Option<(Image, u32)> {
    let (head, pixels) = bytes.split_first_chunk::<HEAD>()?;
    let [_, _, _, _, _, _, _, _, w0, w1, w2, w3, h0, h1, h2, h3, c0, c1, c2, c3] = *head;
    let (width, height) = (u32::from_le_bytes([w0, w1, w2, w3]), u32::from_le_bytes([h0, h1, h2, h3]));
    let image = Image::new(width, height, pixels.to_vec())?;
    let is_ours = head.starts_with(&MAGIC) && !pixels.is_empty();
    is_ours.then_some((image, u32::from_le_bytes([c0, c1, c2, c3])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn striped(width: u32, height: u32) -> Image {
        let pixels = (0..width * height * 3).map(|n| (n % 251) as u8).collect();
        Image::new(width, height, pixels).unwrap()
    }

    #[test]
    fn the_shorter_side_decides() {
        let sides = |image: Image| (image.width(), image.height());
        assert_eq!(sides(shrunk(striped(100, 75), 50)), (67, 50));
        assert_eq!(sides(shrunk(striped(30, 300), 20)), (20, 200));
        assert_eq!(sides(shrunk(striped(51, 51), 50)), (50, 50));
        // An image that is small enough, or no limit: the same bytes.
        for (image, side) in [(striped(50, 70), 50), (striped(9, 9), 50), (striped(100, 75), 0)] {
            assert_eq!(shrunk(image.clone(), side), image);
        }
        // Shrinking again changes nothing.
        let once = shrunk(striped(100, 75), 50);
        assert_eq!(shrunk(once.clone(), 50), once);
    }

    #[test]
    fn stored_shrunk_image_reads_back() {
        let image = striped(7, 5);
        let bytes = stored(&image, b"file");
        assert_eq!(from_stored(&bytes), Some((image, crc32c::crc32c(b"file"))));
        for end in 0..bytes.len() {
            assert_eq!(from_stored(&bytes[..end]), None, "cut at {end}");
        }
        let mut enormous = bytes.clone();
        enormous[8..16].fill(0xff);
        assert_eq!(from_stored(&enormous), None);
        enormous[..8].fill(0);
        assert_eq!(from_stored(&[&[0; 8], &bytes[8..]].concat()), None);
        assert_eq!(from_stored(&[&MAGIC[..], &[0; 12]].concat()), None, "no pixels");
    }
}
