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

pub(crate) mod budget;
mod file_kind;
mod jpeg;
mod orientation;
mod png;
#[cfg(feature = "turbo")]
mod turbo;
mod webp;

use std::fmt;

use crate::error::DataError;
use crate::image::Image;

pub(crate) use budget::Lease;
pub use file_kind::{FileKind, kind};
use orientation::Orientation;

/// How large an encoded image may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Pixels along the longer side.
    pub side: u32,
    /// Pixels altogether.
    pub pixels: u64,
    /// Bytes of the encoded file.
    pub bytes: u64,
}

impl Default for DecodeLimits {
    /// Sides to 16,384, 64 Mi pixels (192 MiB decoded), files to 256 MiB.
    fn default() -> Self {
        Self { side: 16_384, pixels: 64 << 20, bytes: 256 << 20 }
    }
}

/// The most pixels that a byte of a large image stands for. A scanned page in black and white has some hundred; an image
/// of one colour, crafted to exhaust memory, has millions.
const PIXELS_PER_BYTE: u64 = 1_024;

/// What is wrong with bytes that cannot be decoded to an image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeProblem {
    /// A format that calmix does not read.
    Kind(FileKind),
    /// A variant of JPEG, PNG or WebP that calmix does not read.
    Variant(String),
    /// A sequential JPEG whose components come in scans of their own, subsampled or with restart markers: valid, and
    /// decoded to wrong pixels without an error.
    Scans(u32),
    /// Larger than the limits.
    Size {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// The limits.
        limits: DecodeLimits,
    },
    /// Far more pixels than a file of this length plausibly encodes.
    Bomb {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Bytes of the file.
        bytes: u64,
    },
    /// A file of more bytes than the limits.
    Bytes(u64),
    /// The file ends before the image does.
    Short(&'static str),
    /// Bytes that contradict their format.
    Damaged(&'static str, String),
}

impl fmt::Display for DecodeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "this is {kind}; calmix reads JPEG, PNG and WebP"),
            Self::Variant(what) => f.write_str(what),
            Self::Scans(scans) => write!(
                f,
                "a baseline JPEG in {scans} scans, with subsampling or restart markers, which calmix does not decode reliably"
            ),
            Self::Size { width, height, limits } => {
                let DecodeLimits { side, pixels, .. } = limits;
                write!(f, "{width}×{height} pixels, more than {side} per side or {pixels} in total")
            }
            Self::Bomb { width, height, bytes } => {
                write!(f, "{width}×{height} pixels in only {bytes} bytes, which is not a plausible photo")
            }
            Self::Bytes(bytes) => write!(f, "{bytes} bytes, more than an image file may have"),
            Self::Short(kind) => write!(f, "the {kind} is cut short"),
            Self::Damaged(kind, what) => write!(f, "the {kind} is damaged: {what}"),
        }
    }
}

impl DecodeProblem {
    /// What to try next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.hint(),
            Self::Variant(_) => "save it again as a baseline JPEG or a PNG",
            Self::Scans(_) => {
                "convert it to one scan, without loss: jpegtran -optimize -copy all OLD.jpg > NEW.jpg; or save it again \
                 with ImageMagick (magick OLD.jpg NEW.jpg) or Pillow"
            }
            Self::Bomb { .. } => "remove it, or scale it down if you know what it is",
            Self::Size { .. } | Self::Bytes(_) => "scale it down",
            Self::Short(_) => "download it again",
            Self::Damaged(..) => {
                "open it in an image viewer: if that fails too, download it again or remove it"
            }
        }
    }
}

/// The properties that the header of an image declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    width: u32,
    height: u32,
    orientation: Orientation,
    /// Where the image ends in its file.
    end: usize,
}

/// The size of an image and its end in the file, from its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageExtent {
    /// Pixels in a row of the upright image.
    pub(crate) width: u32,
    /// Its rows.
    pub(crate) height: u32,
    /// Where the image ends in its file; what comes behind is not read.
    pub(crate) end: usize,
}

/// Decodes an encoded image.
///
/// # Errors
/// If it is not a JPEG, PNG or WebP, is larger than the limits, cut short or damaged.
///
/// ```
/// use calmix_data::decode::{DecodeLimits, DecodeProblem, FileKind, decode};
/// use calmix_data::error::DataError;
///
/// let error = decode(b"GIF89a...", &DecodeLimits::default()).unwrap_err();
/// assert!(matches!(error, DataError::Image(DecodeProblem::Kind(FileKind::Gif))));
/// assert_eq!(error.to_string(), "this is a GIF; calmix reads JPEG, PNG and WebP");
/// ```
pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<Image, DataError> {
    decode_at_least(bytes, limits, u32::MAX)
}

/// Decodes an encoded image, to a half, a quarter or an eighth of its size if its shorter side is then still at
/// least `side`.
///
/// Only JPEG with the feature `turbo` is ever decoded smaller; everything else comes in its full size.
///
/// # Errors
/// As [`decode`].
pub fn decode_at_least(bytes: &[u8], limits: &DecodeLimits, side: u32) -> Result<Image, DataError> {
    let (kind, head) = head(bytes, limits)?;
    let lease = budget::PIXELS.lease(u64::from(head.width) * u64::from(head.height));
    let image = match kind {
        FileKind::Jpeg => jpeg::pixels(bytes, head, side)?,
        FileKind::Png => png::pixels(bytes, head)?,
        _ => webp::pixels(bytes, head)?,
    };
    Ok(head.orientation.upright(image).with_lease(lease))
}

/// Width and height of the upright image, from the header, without decoding; a JPEG or PNG is also checked for
/// its end.
///
/// # Errors
/// As [`decode`], but for damage inside the compressed pixels.
pub fn size(bytes: &[u8], limits: &DecodeLimits) -> Result<(u32, u32), DataError> {
    let ImageExtent { width, height, .. } = extent(bytes, limits)?;
    Ok((width, height))
}

/// Reads the size as [`size`] does, with the end of the image in its file.
pub(crate) fn extent(bytes: &[u8], limits: &DecodeLimits) -> Result<ImageExtent, DataError> {
    let (_, Head { width, height, orientation, end }) = head(bytes, limits)?;
    Ok(if orientation.swaps() {
        ImageExtent { width: height, height: width, end }
    } else {
        ImageExtent { width, height, end }
    })
}

fn head(bytes: &[u8], limits: &DecodeLimits) -> Result<(FileKind, Head), DecodeProblem> {
    if bytes.len() as u64 > limits.bytes {
        return Err(DecodeProblem::Bytes(bytes.len() as u64));
    }
    let kind = kind(bytes);
    let head = match kind {
        FileKind::Jpeg => jpeg::head(bytes)?,
        FileKind::Png => png::head(bytes)?,
        FileKind::Webp => webp::head(bytes)?,
        other => return Err(DecodeProblem::Kind(other)),
    };
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
    if pixels > budget::SMALL_IMAGE && pixels > bytes.saturating_mul(PIXELS_PER_BYTE) {
        return Err(DecodeProblem::Bomb { width, height, bytes });
    }
    Ok((kind, head))
}

/// An image from the `pixels` of an external decoder, whose number is checked.
fn image(kind: &'static str, width: u32, height: u32, pixels: Vec<u8>) -> Result<Image, DecodeProblem> {
    Image::new(width, height, pixels).ok_or_else(|| {
        DecodeProblem::Damaged(kind, "the number of its pixels does not match its header".into())
    })
}
