//! MATLAB's version 5 files, as far as datasets need them: numeric arrays, read as a stream.
//!
//! A file consists of a header of 128 bytes and a sequence of elements, each with its type and length; a variable is one
//! element, usually zlib-compressed. A variable is found by name without decompressing earlier ones, and its values are
//! streamed in order, so an array of gigabytes needs no memory. Two variables can be read side by side. Format: "MAT-File
//! Format" (The MathWorks), chapter 1. Written by hand because no crate streams an array, and the extra images of SVHN
//! decompress to 1.6 GB.
//!
//! ```no_run
//! # fn main() -> Result<(), calmix_formats::error::FormatError> {
//! use calmix_formats::mat::MatFile;
//!
//! let file = MatFile::open("train_32x32.mat".as_ref())?;
//! if let Some(mut labels) = file.variable("y")? {
//!     let first = labels.number()?;
//! }
//! # Ok(())
//! # }
//! ```

mod body;
mod variable;

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::FormatError;
use body::{Body, ByteOrder, COMPRESSED, MATRIX};
pub use variable::{MatType, Variable};

const HEADER: u64 = 128;
/// Datasets have two variables; a file with a million empty ones is not a dataset.
const MAX_VARIABLES: u32 = 1_000;

/// A file whose header was checked.
#[derive(Debug)]
pub struct MatFile {
    path: PathBuf,
    length: u64,
    order: ByteOrder,
}

impl MatFile {
    /// Opens a file and checks its header.
    ///
    /// # Errors
    /// If it cannot be read or is of another version.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        let failed = |error| FormatError::new(path, error);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut header = Vec::new();
        file.take(HEADER).read_to_end(&mut header).map_err(failed)?;
        let refused = |problem: &str, hint: &str| Err(FormatError::format(path, problem).hint(hint));
        if header.starts_with(b"\x89HDF\r\n\x1a\n") || header.starts_with(b"MATLAB 7.3 MAT-file") {
            return refused("a MATLAB 7.3 (HDF5) file", "save it again in MATLAB with save(…, '-v7')");
        }
        let &[.., v0, v1, e0, e1] = header.as_slice() else {
            return refused("the file is shorter than a header of 128 bytes", "download the file again");
        };
        if (header.len() as u64) < HEADER {
            return refused("the file is shorter than a header of 128 bytes", "download the file again");
        }
        let (order, version) = match [e0, e1] {
            [b'I', b'M'] => (ByteOrder::Little, u16::from_le_bytes([v0, v1])),
            [b'M', b'I'] => (ByteOrder::Big, u16::from_be_bytes([v0, v1])),
            _ => return refused("not a MATLAB file of version 5", "save it in MATLAB with save(…, '-v7')"),
        };
        match version {
            0x0100 => Ok(Self { path: path.to_owned(), length, order }),
            0x0200 => refused("a MATLAB 7.3 (HDF5) file", "save it again in MATLAB with save(…, '-v7')"),
            _ => refused("an unknown version of MATLAB's format", "save it in MATLAB with save(…, '-v7')"),
        }
    }

    /// Finds a variable and positions it at its first value; `None` if the file does not have it.
    ///
    /// # Errors
    /// If an element before it is damaged, or it is not an array of real numbers.
    pub fn variable(&self, name: &str) -> Result<Option<Variable>, FormatError> {
        let failed = |error| FormatError::new(&self.path, error);
        let mut position = HEADER;
        for _ in 0..MAX_VARIABLES {
            if position == self.length {
                return Ok(None);
            }
            let mut file = File::open(&self.path).map_err(failed)?;
            file.seek(SeekFrom::Start(position)).map_err(failed)?;
            let mut reader = BufReader::with_capacity(1 << 16, file);
            let refused = |problem: String| {
                let error = FormatError::format(&self.path, problem);
                error.at(format!("byte {position}")).hint("download the file again")
            };
            let mut tag = [0; 8];
            let left = self.length - position;
            if left < 8 {
                return Err(refused(format!("expected the 8 bytes of an element header, found {left}")));
            }
            reader.read_exact(&mut tag).map_err(failed)?;
            let [k0, k1, k2, k3, n0, n1, n2, n3] = tag;
            let (kind, bytes) = (self.order.u32([k0, k1, k2, k3]), self.order.u32([n0, n1, n2, n3]));
            if u64::from(bytes) > left - 8 {
                return Err(refused(format!("expected an element of {bytes} bytes, found {}", left - 8)));
            }
            let body = match kind {
                MATRIX => Body::plain(&self.path, self.order, reader, position + 8, bytes),
                COMPRESSED => Body::compressed(&self.path, self.order, reader, position, bytes)?,
                other => return Err(refused(format!("an element of type {other}, expected 14 or 15"))),
            };
            if let Some(variable) = Variable::read(body, name)? {
                return Ok(Some(variable));
            }
            position += 8 + u64::from(bytes);
        }
        let problem = format!("there is no {name:?} among the first {MAX_VARIABLES} variables");
        Err(FormatError::limit(&self.path, problem))
    }
}
