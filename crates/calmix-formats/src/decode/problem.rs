//! How large an image may be, and what can be wrong with one.

use std::error::Error;
use std::fmt;

use super::file_kind::FileKind;
use crate::error::FormatProblem;

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

impl Error for DecodeProblem {}

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
