//! The kind of a file, detected by its first bytes.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    Jpeg,
    Png,
    Webp,
    Gif,
    /// TIFF, and camera raw formats based on it: DNG, NEF, ARW.
    Tiff,
    /// A camera raw file with its own signature: CR2, CR3, RAF, RW2, ORF.
    Raw,
    Bmp,
    /// HEIC or HEIF, the format of phones.
    Heic,
    Avif,
    JpegXl,
    Jpeg2000,
    /// A NumPy array file.
    Npy,
    /// A Python pickle.
    Pickle,
    /// A zip archive: `.npz`, `.pt`, `.zip`.
    Zip,
    /// A gzip stream.
    Gzip,
    /// An HDF5 file: `.h5`, `.mat` v7.3.
    Hdf5,
    /// The pointer that Git LFS leaves in place of a large file.
    LfsPointer,
    /// A web page, such as the error page of a download.
    WebPage,
    /// An empty file.
    Empty,
    /// Anything else.
    Unknown,
}

impl FileKind {
    /// Returns whether this is an image, supported or not.
    pub fn is_image(self) -> bool {
        use FileKind::{Avif, Bmp, Gif, Heic, Jpeg, Jpeg2000, JpegXl, Png, Raw, Tiff, Webp};
        matches!(self, Jpeg | Png | Webp | Gif | Tiff | Raw | Bmp | Heic | Avif | JpegXl | Jpeg2000)
    }

    pub(super) fn short(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            _ => "WebP",
        }
    }

    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::Heic => {
                "convert it to JPEG: `heif-convert FILE out.jpg`, or all at once `magick mogrify -format jpg *.heic`"
            }
            Self::Avif | Self::JpegXl | Self::Jpeg2000 => {
                "convert it to JPEG, for example with `magick FILE out.jpg`"
            }
            Self::Raw => "develop it to JPEG, for example with `darktable-cli FILE out.jpg`",
            Self::Tiff => {
                "convert it to PNG with `magick FILE out.png`, or a raw file to JPEG with `darktable-cli FILE out.jpg`"
            }
            Self::Npy | Self::Hdf5 | Self::Zip => "save each of its images as a PNG file",
            Self::Pickle => {
                "calmix does not open pickles, because reading one can run code: save its images as PNG files"
            }
            Self::Gzip => "unpack it first",
            Self::LfsPointer => "run `git lfs pull` to fetch the file itself",
            Self::WebPage | Self::Empty => "download it again",
            _ => "convert it to PNG, for example with `magick FILE out.png`",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Jpeg => "a JPEG",
            Self::Png => "a PNG",
            Self::Webp => "a WebP",
            Self::Gif => "a GIF",
            Self::Tiff => "a TIFF or a camera's raw file",
            Self::Raw => "a camera's raw file",
            Self::Bmp => "a BMP",
            Self::Heic => "a HEIC",
            Self::Avif => "an AVIF",
            Self::JpegXl => "a JPEG XL",
            Self::Jpeg2000 => "a JPEG 2000",
            Self::Npy => "a NumPy array",
            Self::Pickle => "a Python pickle",
            Self::Zip => "a zip archive",
            Self::Gzip => "a gzip stream",
            Self::Hdf5 => "an HDF5 file",
            Self::LfsPointer => "a Git LFS pointer, not the file itself",
            Self::WebPage => "a web page",
            Self::Empty => "an empty file",
            Self::Unknown => "not an image format that calmix knows",
        })
    }
}

/// Detects the kind of a file by its first bytes (16 are enough, except for a web page).
pub fn kind(bytes: &[u8]) -> FileKind {
    const STARTS: [(&[u8], FileKind); 28] = [
        (b"\xff\xd8\xff", FileKind::Jpeg),
        (b"\x89PNG\r\n\x1a\n", FileKind::Png),
        (b"GIF87a", FileKind::Gif),
        (b"GIF89a", FileKind::Gif),
        (b"II*\0\x10\0\0\0CR", FileKind::Raw),
        (b"FUJIFILMCCD-RAW", FileKind::Raw),
        (b"IIU\0", FileKind::Raw),
        (b"IIRO", FileKind::Raw),
        (b"IIRS", FileKind::Raw),
        (b"MMOR", FileKind::Raw),
        (b"\0MRM", FileKind::Raw),
        (b"II*\0", FileKind::Tiff),
        (b"MM\0*", FileKind::Tiff),
        (b"II+\0", FileKind::Tiff),
        (b"MM\0+", FileKind::Tiff),
        (b"\xff\x0a", FileKind::JpegXl),
        (b"\0\0\0\x0cJXL ", FileKind::JpegXl),
        (b"\0\0\0\x0cjP  ", FileKind::Jpeg2000),
        (b"\xff\x4f\xff\x51", FileKind::Jpeg2000),
        (b"\x93NUMPY", FileKind::Npy),
        (b"PK\x03\x04", FileKind::Zip),
        (b"PK\x05\x06", FileKind::Zip),
        (b"\x1f\x8b", FileKind::Gzip),
        (b"\x89HDF\r\n\x1a\n", FileKind::Hdf5),
        (b"version https://git-lfs", FileKind::LfsPointer),
        (b"<!DOCTYPE", FileKind::WebPage),
        (b"<!doctype", FileKind::WebPage),
        (b"<html", FileKind::WebPage),
    ];
    if bytes.is_empty() {
        return FileKind::Empty;
    }
    if let Some((_, kind)) = STARTS.iter().find(|(start, _)| bytes.starts_with(start)) {
        return *kind;
    }
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => FileKind::Webp,
        [_, _, _, _, b'f', b't', b'y', b'p', b'c', b'r', b'x', ..] => FileKind::Raw,
        [_, _, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', b'f' | b's', ..] => FileKind::Avif,
        [_, _, _, _, b'f', b't', b'y', b'p', b'h', b'e', ..]
        | [_, _, _, _, b'f', b't', b'y', b'p', b'm', b'i' | b's', b'f', b'1', ..] => FileKind::Heic,
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => FileKind::Bmp,
        [0x80, 2..=5, ..] => FileKind::Pickle,
        _ => FileKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_first_bytes() {
        let cases: [(&[u8], FileKind); 15] = [
            (b"", FileKind::Empty),
            (b"\xff\xd8\xff\xe0", FileKind::Jpeg),
            (b"RIFF\0\0\0\0WEBPVP8 ", FileKind::Webp),
            (b"RIFF\0\0\0\0WAVEfmt ", FileKind::Unknown),
            (b"\0\0\0\x18ftypheic\0\0\0\0", FileKind::Heic),
            (b"\0\0\0\x18ftypmif1\0\0\0\0", FileKind::Heic),
            (b"\0\0\0\x1cftypavif\0\0\0\0", FileKind::Avif),
            (b"\0\0\0\x18ftypcrx \0\0\0\x01", FileKind::Raw),
            (b"II*\0\x10\0\0\0CR\x02\0", FileKind::Raw),
            (b"II*\0\x08\0\0\0", FileKind::Tiff),
            (b"FUJIFILMCCD-RAW 0201", FileKind::Raw),
            (b"IIU\0\x18\0\0\0", FileKind::Raw),
            (b"\x80\x04\x95", FileKind::Pickle),
            (b"BM\x36\0\0\0\0\0\0\0", FileKind::Bmp),
            (b"BMW is a car maker", FileKind::Unknown),
        ];
        for (bytes, expected) in cases {
            assert_eq!(kind(bytes), expected, "{bytes:?}");
        }
    }
}
