//! Encoded images to pixels: JPEG, PNG and WebP, detected by their first bytes, never by their names.
//!
//! Every image comes out as RGB, eight bits per channel, upright. The rules are those of Pillow's
//! `ImageOps.exif_transpose(image).convert("RGB")`:
//!
//! - grey becomes three equal channels; a palette is looked up; 1, 2 and 4 bits are stretched to 0–255;
//! - alpha is dropped: the colour under a transparent pixel is kept as it is stored;
//! - 16 bits keep their upper eight;
//! - CMYK and YCCK are taken as Adobe writes them, inverted, and become (255 − C)(255 − K) / 255 per channel;
//! - all eight EXIF orientations are applied, from JPEG, PNG (`eXIf`) and WebP (`EXIF`);
//! - colour profiles and gamma are ignored.
//!
//! PNG and lossless WebP are Pillow's bytes. Where this differs from Pillow:
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
//! Sizes are checked from the header, before a pixel is decoded or a buffer for one allocated: sides, pixels, and the
//! pixels of a large image against its bytes. Large images of all threads share one budget, and so do large files.

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

/// The most pixels that a byte of a large image stands for. A scanned page in black and white has some hundred; an image
/// of one colour, crafted to exhaust memory, has millions.
const MAX_PIXELS_PER_BYTE: u64 = 1_024;

/// The size of an image and its end in the file, from its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageExtent {
    /// Pixels in a row of the upright image.
    pub width: u32,
    /// Its rows.
    pub height: u32,
    /// Where the image ends in its file; what comes behind is not read.
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

/// Decodes an encoded image, to a half, a quarter or an eighth of its size if its shorter side is then still at
/// least `side`.
///
/// Only JPEG with the feature `turbo` is ever decoded smaller; everything else comes in its full size.
///
/// # Errors
/// As [`decode`].
pub fn decode_at_least(bytes: &[u8], limits: &DecodeLimits, side: u32) -> Result<Image, DecodeProblem> {
    let (format, head) = head(bytes, limits)?;
    let lease = PIXELS.lease(u64::from(head.width) * u64::from(head.height));
    let image = format.pixels(bytes, head, side)?;
    Ok(head.orientation.upright(image).with_lease(lease))
}

/// Width and height of the upright image, from the header, without decoding; a JPEG or PNG is also checked for
/// its end.
///
/// # Errors
/// As [`decode`], but for damage inside the compressed pixels.
pub fn size(bytes: &[u8], limits: &DecodeLimits) -> Result<(u32, u32), DecodeProblem> {
    let ImageExtent { width, height, .. } = extent(bytes, limits)?;
    Ok((width, height))
}

/// Reads the size as [`size`] does, with the end of the image in its file.
///
/// # Errors
/// As [`size`].
pub fn extent(bytes: &[u8], limits: &DecodeLimits) -> Result<ImageExtent, DecodeProblem> {
    let (_, Head { width, height, orientation, end }) = head(bytes, limits)?;
    Ok(if orientation.swaps() {
        ImageExtent { width: height, height: width, end }
    } else {
        ImageExtent { width, height, end }
    })
}

/// The decoder of a kind of files, if calmix has one.
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
    // Bytes behind the image do not count towards its pixels.
    let bytes = head.end as u64;
    if pixels > SMALL_IMAGE && pixels > bytes.saturating_mul(MAX_PIXELS_PER_BYTE) {
        return Err(DecodeProblem::Bomb { width, height, bytes });
    }
    Ok((format, head))
}
