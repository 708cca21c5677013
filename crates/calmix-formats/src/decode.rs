//! Decodes JPEG, PNG and WebP images, which are detected by their first bytes, never by name.
//!
//! Every image is decoded to upright RGB with eight bits per channel, by the rules of Pillow's
//! `ImageOps.exif_transpose(image).convert("RGB")`:
//!
//! - grey becomes three equal channels; palettes are applied; 1, 2 and 4 bits are scaled to 0–255;
//! - alpha is dropped: the colour of a transparent pixel is kept as stored;
//! - of 16 bits, the upper eight are kept;
//! - CMYK and YCCK are read as Adobe writes them, inverted, and become (255 − C)(255 − K) / 255 per channel;
//! - all eight EXIF orientations are applied, from JPEG, PNG (`eXIf`) and WebP (`EXIF`);
//! - colour profiles and gamma are ignored.
//!
//! PNG and lossless WebP give the same bytes as Pillow. Differences from Pillow:
//!
//! | what | here | Pillow |
//! |---|---|---|
//! | JPEG | zune-jpeg: 0.27 grey levels off on average, at most 5 (all of Tiny ImageNet, 4:2:0); at most 9 at hard edges; without subsampling 0.01 and 3 | libjpeg-turbo |
//! | sequential JPEG in several scans with subsampling or restarts; more samples of colour than of brightness | refused: zune-jpeg gives wrong pixels without an error | decoded |
//! | JPEG, feature `turbo` | libjpeg-turbo: the same bytes | libjpeg-turbo |
//! | grey PNG of 16 bits | the upper eight bits, as for colour | values above 255 become white |
//! | JPEG without its end marker, PNG without `IEND` | refused as cut short | accepted if all rows are there |
//! | animated WebP | refused | its first frame |
//! | orientation in XMP or in a PNG's text | ignored | applied |
//!
//! Sizes are checked from the header, before pixels are decoded or buffers allocated: the sides, the number of pixels, and
//! for a large image the ratio of pixels to bytes. Large images of all threads share one memory budget, and so do large
//! files.

mod encoded_file;
mod file_kind;
mod image_format;
mod jpeg;
mod orientation;
mod png;
mod problem;
#[cfg(feature = "turbo")]
mod turbo;
mod webp;

pub use encoded_file::EncodedFile;
pub use file_kind::{FileKind, kind};
use image_format::{Head, ImageFormat};
use jpeg::Jpeg;
use png::Png;
pub use problem::{DecodeLimits, DecodeProblem};
use webp::Webp;

use crate::image::Image;
use crate::memory_budget::{PIXELS, SMALL_IMAGE};

/// The maximum number of pixels per byte of a large image. A scanned black-and-white page has a few hundred; a single-colour
/// image crafted to exhaust memory has millions.
const MAX_PIXELS_PER_BYTE: u64 = 1_024;

/// The size of an image and its end in the file, read from its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageExtent {
    /// Pixels per row of the upright image.
    pub width: u32,
    /// Rows of the upright image.
    pub height: u32,
    /// The end of the image in its file; later bytes are not read.
    pub end: usize,
}

/// Decodes an encoded image.
///
/// # Errors
/// If it is not a JPEG, PNG or WebP, is larger than the limits, cut short or damaged.
///
/// ```
/// use calmix_formats::decode::{DecodeLimits, DecodeProblem, FileKind, decode};
///
/// let error = decode(b"GIF89a...", &DecodeLimits::default()).unwrap_err();
/// assert!(matches!(error, DecodeProblem::Kind(FileKind::Gif)));
/// assert_eq!(error.to_string(), "this is a GIF; calmix reads JPEG, PNG and WebP");
/// ```
pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<Image, DecodeProblem> {
    decode_at_least(bytes, limits, u32::MAX)
}

/// Decodes an encoded image at a half, a quarter or an eighth of its size if its shorter side then still has at least `side`
/// pixels.
///
/// Only JPEG with the feature `turbo` is decoded at reduced size; everything else has its full size.
pub fn decode_at_least(bytes: &[u8], limits: &DecodeLimits, side: u32) -> Result<Image, DecodeProblem> {
    let (format, head) = head(bytes, limits)?;
    let lease = PIXELS.lease(u64::from(head.width) * u64::from(head.height));
    let image = format.pixels(bytes, head, side)?;
    Ok(head.orientation.upright(image).with_lease(lease))
}

/// Reads width and height of the upright image from the header, without decoding; the end of a JPEG or PNG is also checked.
///
/// # Errors
/// As [`decode`], except for damage inside the compressed pixels.
pub fn size(bytes: &[u8], limits: &DecodeLimits) -> Result<(u32, u32), DecodeProblem> {
    let ImageExtent { width, height, .. } = extent(bytes, limits)?;
    Ok((width, height))
}

/// Reads the size as [`size`] does, and the end of the image in its file.
pub fn extent(bytes: &[u8], limits: &DecodeLimits) -> Result<ImageExtent, DecodeProblem> {
    let (_, Head { width, height, orientation, end }) = head(bytes, limits)?;
    Ok(if orientation.swaps() {
        ImageExtent { width: height, height: width, end }
    } else {
        ImageExtent { width, height, end }
    })
}

/// Returns the decoder for a kind of file, if supported.
fn format_of(kind: FileKind) -> Option<&'static dyn ImageFormat> {
    match kind {
        FileKind::Jpeg => Some(&Jpeg),
        FileKind::Png => Some(&Png),
        FileKind::Webp => Some(&Webp),
        _ => None,
    }
}

fn head(bytes: &[u8], limits: &DecodeLimits) -> Result<(&'static dyn ImageFormat, Head), DecodeProblem> {
    if bytes.len() as u64 > limits.bytes {
        return Err(DecodeProblem::Bytes(bytes.len() as u64));
    }
    let kind = kind(bytes);
    let format = format_of(kind).ok_or(DecodeProblem::Kind(kind))?;
    let head = format.head(bytes)?;
    let Head { width, height, .. } = head;
    if width == 0 || height == 0 {
        return Err(DecodeProblem::Damaged(kind.short(), format!("{width}×{height} pixels")));
    }
    let pixels = u64::from(width) * u64::from(height);
    if width.max(height) > limits.side || pixels > limits.pixels {
        return Err(DecodeProblem::Size { width, height, limits: *limits });
    }
    // Bytes after the image do not count.
    let bytes = head.end as u64;
    if pixels > SMALL_IMAGE && pixels > bytes.saturating_mul(MAX_PIXELS_PER_BYTE) {
        return Err(DecodeProblem::Bomb { width, height, bytes });
    }
    Ok((format, head))
}
