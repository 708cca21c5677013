//! The size limits of images, and the problems that decoding can find.

use std::error::Error;
use std::fmt;

use super::file_kind::FileKind;
use crate::error::FormatProblem;

/// The size limits of an encoded image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// The maximum of the longer side, in pixels.
    pub side: u32,
    /// The maximum number of pixels.
    pub pixels: u64,
    /// The maximum size of the encoded file, in bytes.
    pub bytes: u64,
}

impl Default for DecodeLimits {
    /// Sides up to 16,384 pixels, 64 Mi pixels (192 MiB decoded), files up to 256 MiB.
    fn default() -> Self {
        Self { side: 16_384, pixels: 64 << 20, bytes: 256 << 20 }
    }
}

/// Why bytes cannot be decoded to an image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeProblem {
    /// An unsupported format.
    Kind(FileKind),
    /// An unsupported variant of JPEG, PNG or WebP.
    Variant(String),
    /// A sequential JPEG whose components are in separate scans, with subsampling or restart markers. It is valid, but would
    /// be decoded to wrong pixels without an error.
    Scans(u32),
    /// Exceeds the size limits.
    Size {
        /// Pixels per row.
        width: u32,
        /// Rows.
        height: u32,
        limits: DecodeLimits,
    },
    /// Implausibly many pixels for the length of the file.
    Bomb {
        /// Pixels per row.
        width: u32,
        /// Rows.
        height: u32,
        /// Bytes in the file.
        bytes: u64,
    },
    /// A file that exceeds the limit, with its size in bytes.
    Bytes(u64),
    /// The file ends before the image.
    Short(&'static str),
    /// Bytes that violate their format.
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

impl Error for DecodeProblem {}

impl DecodeProblem {
    /// Returns what the user can try next.
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

impl From<DecodeProblem> for FormatProblem {
    fn from(problem: DecodeProblem) -> Self {
        match problem {
            DecodeProblem::Size { .. } | DecodeProblem::Bomb { .. } | DecodeProblem::Bytes(_) => {
                Self::Limit(problem.to_string())
            }
            _ => Self::Format(problem.to_string()),
        }
    }
}
