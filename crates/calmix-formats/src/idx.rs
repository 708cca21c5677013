//! IDX files of unsigned bytes, plain or gzipped.
//!
//! An idx file is two zero bytes, the type (8: unsigned bytes), the number of dimensions, each dimension as a
//! big-endian u32, and the values. <http://yann.lecun.com/exdb/mnist/>

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::error::FormatError;
use crate::expansion;
use crate::source_dir::SourceDir;

/// The maximum side of an image: one image is held in memory, and the published ones have 28 pixels.
const MAX_SIDE: u32 = 4_096;

/// An IDX file with its header read.
pub struct Idx {
    pub path: PathBuf,
    /// Its path below the root, with `/`.
    pub relative: String,
    /// Whether the file is gzipped.
    pub packed: bool,
    /// Its dimensions, in order.
    pub dims: Vec<u32>,
    /// The product of the dimensions.
    pub values: u64,
    /// The number of bytes read so far, after decompression.
    pub position: u64,
    stream: Box<dyn Read>,
}

impl Idx {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// If it cannot be read, or its header is damaged or declares another length.
    pub fn open(dir: &SourceDir, name: &str) -> Result<Self, FormatError> {
        let opened = dir.open(name)?;
        let packed = Path::new(name).extension().is_some_and(|extension| extension == "gz");
        let stream: Box<dyn Read> =
            if packed { Box::new(MultiGzDecoder::new(opened.reader)) } else { Box::new(opened.reader) };
        let (path, relative) = (opened.path, opened.relative);
        let mut idx = Self { path, relative, packed, dims: Vec::new(), values: 0, position: 0, stream };
        let mut magic = [0; 4];
        idx.read(&mut magic)?;
        let dimensions = if name.contains("-idx3-") { 3 } else { 1 };
        if magic != [0, 0, 8, dimensions] {
            return Err(idx.refused(&format!("expected 00 00 08 {dimensions:02x}, found {magic:02x?}")));
        }
        let mut values: Option<u64> = Some(1);
        for _ in 0..dimensions {
            let mut dim = [0; 4];
            idx.read(&mut dim)?;
            let dim = u32::from_be_bytes(dim);
            idx.dims.push(dim);
            values = values.and_then(|values| values.checked_mul(u64::from(dim)));
        }
        let total = values.and_then(|values| values.checked_add(idx.position));
        let Some((values, total)) = values.zip(total) else {
            return Err(idx.refused(&format!("the dimensions {:?} are too large", idx.dims)));
        };
        idx.values = values;
        if !packed && total != opened.length {
            let problem = format!("its header declares {total} bytes, but the file has {}", opened.length);
            return Err(idx.refused(&problem));
        }
        if packed && !expansion::is_plausible(opened.length, total) {
            let problem = format!("{} compressed bytes that claim to unpack to {total} bytes", opened.length);
            let error = FormatError::limit(&idx.path, problem);
            return Err(error.hint("if you trust the file, unpack it with gunzip first"));
        }
        Ok(idx)
    }

    /// Returns the width and height of the images, if these labels and the other subset are consistent with them.
    ///
    /// # Errors
    /// If they are not, there are no images, or an image is too large.
    pub fn check_against(&self, labels: &Self, size: Option<(u32, u32)>) -> Result<(u32, u32), FormatError> {
        let (&[samples, height, width], &[labelled]) = (self.dims.as_slice(), labels.dims.as_slice()) else {
            return Err(self.refused("expected three dimensions for the images and one for the labels"));
        };
        let hint = "download images and labels again, together";
        let content = |path: &Path, problem: String| FormatError::content(path, problem).hint(hint);
        if samples == 0 {
            return Err(content(&self.path, "the file has no images".into()));
        }
        if samples != labelled {
            return Err(content(&labels.path, format!("{labelled} labels for {samples} images")));
        }
        if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
            let problem = format!("images of {width}×{height} pixels, expected 1 to {MAX_SIDE} per side");
            return Err(FormatError::limit(&self.path, problem));
        }
        match size {
            Some((w, h)) if (w, h) != (width, height) => {
                let problem = format!("images of {width}×{height} pixels, but the others have {w}×{h}");
                Err(content(&self.path, problem))
            }
            _ => Ok((width, height)),
        }
    }

    /// Reads the next values and fills `into`.
    ///
    /// # Errors
    /// If there are fewer, or the file cannot be read.
    pub fn read(&mut self, into: &mut [u8]) -> Result<(), FormatError> {
        self.stream.read_exact(into).map_err(|error| self.unreadable(error))?;
        self.position += into.len() as u64;
        Ok(())
    }

    /// Refuses bytes after the last value, and verifies gzip's checksum.
    pub fn finish(mut self) -> Result<(), FormatError> {
        match self.stream.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => {
                Err(self.refused(&format!("more than the {} values that its header declares", self.values)))
            }
            Err(error) => Err(self.unreadable(error)),
        }
    }

    /// Names a position in the file for an error.
    pub fn location(&self, position: u64) -> String {
        format!("byte {position}{}", if self.packed { " when unpacked" } else { "" })
    }

    fn unreadable(&self, error: io::Error) -> FormatError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.refused("the file ends early"),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if self.packed => {
                self.refused(&format!("not gzip, or damaged ({error})"))
            }
            _ => FormatError::new(&self.path, error).at(self.location(self.position)),
        }
    }

    /// Returns the error for a file that violates its format.
    pub fn refused(&self, problem: &str) -> FormatError {
        let error = FormatError::format(&self.path, problem);
        error.at(self.location(self.position)).hint("download the file again")
    }
}
