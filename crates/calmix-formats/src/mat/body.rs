//! The bytes of one variable, plain or decompressed on the fly, never more than it declares.

use std::fs::File;
use std::io::{self, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use flate2::bufread::ZlibDecoder;

use crate::error::FormatError;
use crate::expansion;

/// Types of elements.
pub(super) const MATRIX: u32 = 14;
pub(super) const COMPRESSED: u32 = 15;

/// The byte order of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }
}

/// The remaining bytes of a variable.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) path: PathBuf,
    pub(super) order: ByteOrder,
    stream: MatStream,
    /// The offset of its element in the file if it is compressed, for errors.
    element: Option<u64>,
    /// The position of the next byte: in the file if plain, otherwise in the decompressed element.
    position: u64,
    left: u64,
    /// Up to four bytes from an element's head, to be read first, and the number of them that remain.
    inline: ([u8; 4], usize),
}

#[derive(Debug)]
enum MatStream {
    Plain(BufReader<File>),
    Packed(ZlibDecoder<Take<BufReader<File>>>),
}

/// The head of an element within a variable.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) kind: u32,
    pub(super) bytes: u32,
    /// Whether its bytes are part of its head and have no padding.
    pub(super) inline: bool,
}

impl Body {
    pub(super) fn plain(
        path: &Path,
        order: ByteOrder,
        reader: BufReader<File>,
        position: u64,
        bytes: u32,
    ) -> Self {
        let (path, stream) = (path.to_owned(), MatStream::Plain(reader));
        Self { path, order, stream, element: None, position, left: u64::from(bytes), inline: ([0; 4], 0) }
    }

    /// Opens a zlib-compressed matrix; refuses other elements, and a matrix that is far larger than its compressed bytes.
    pub(super) fn compressed(
        path: &Path,
        order: ByteOrder,
        reader: BufReader<File>,
        element: u64,
        bytes: u32,
    ) -> Result<Self, FormatError> {
        let stream = MatStream::Packed(ZlibDecoder::new(reader.take(u64::from(bytes))));
        let (path, element, inline) = (path.to_owned(), Some(element), ([0; 4], 0));
        let mut body = Self { path, order, stream, element, position: 0, left: 8, inline };
        let head = body.element()?;
        match head.kind {
            MATRIX if !head.inline => {}
            COMPRESSED => return Err(body.refused("compressed data inside compressed data")),
            other => return Err(body.refused(format!("an element of type {other}, expected a matrix (14)"))),
        }
        if !expansion::is_plausible(u64::from(bytes), u64::from(head.bytes)) {
            let problem = format!("{bytes} compressed bytes that claim to unpack to {} bytes", head.bytes);
            let hint = "if you trust the file, save it uncompressed with save(…, '-v6')";
            return Err(FormatError::limit(&body.path, problem).at(body.location()).hint(hint));
        }
        body.left = u64::from(head.bytes);
        Ok(body)
    }

    /// Returns the number of remaining bytes.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the position of the next byte in the file, if the variable is uncompressed and contiguous.
    pub(super) fn offset(&self) -> Option<u64> {
        (self.element.is_none() && self.inline.1 == 0).then_some(self.position)
    }

    /// Reads the next bytes and fills `into`.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<(), FormatError> {
        let (bytes, count) = self.inline;
        let from_head = count.min(into.len());
        let (first, rest) = into.split_at_mut(from_head);
        for (to, from) in first.iter_mut().zip(bytes) {
            *to = from;
        }
        if from_head > 0 {
            self.inline.0.rotate_left(from_head);
            self.inline.1 -= from_head;
        }
        if rest.len() as u64 > self.left {
            return Err(self.refused(format!(
                "expected {} more bytes, but the variable has {}",
                rest.len(),
                self.left
            )));
        }
        let read = match &mut self.stream {
            MatStream::Plain(plain) => plain.read_exact(rest),
            MatStream::Packed(packed) => packed.read_exact(rest),
        };
        read.map_err(|error| self.unreadable(error))?;
        self.left -= rest.len() as u64;
        self.position += rest.len() as u64;
        Ok(())
    }

    /// Reads the head of the next element; bytes that are part of the head are read next.
    pub(super) fn element(&mut self) -> Result<Element, FormatError> {
        let mut head = [0; 8];
        self.read(&mut head)?;
        let [a, b, c, d, rest @ ..] = head;
        let first = self.order.u32([a, b, c, d]);
        let (kind, bytes) = (first & 0xffff, first >> 16);
        if bytes == 0 {
            return Ok(Element { kind, bytes: self.order.u32(rest), inline: false });
        }
        if bytes > 4 {
            return Err(self.refused(format!(
                "an element of type {kind} with {bytes} bytes in its header, expected at most 4"
            )));
        }
        self.inline = (rest, bytes as usize);
        Ok(Element { kind, bytes, inline: true })
    }

    /// Skips the padding of an element to a multiple of eight bytes.
    pub(super) fn padding(&mut self, element: &Element) -> Result<(), FormatError> {
        if element.inline {
            return Ok(());
        }
        let fill = (8 - element.bytes % 8) % 8;
        let mut bytes = [0; 8];
        self.read(bytes.get_mut(..fill as usize).unwrap_or_default())
    }

    /// Refuses bytes after the last one, and verifies zlib's checksum.
    pub(super) fn finish(mut self) -> Result<(), FormatError> {
        if self.left != 0 {
            return Err(self.refused(format!("{} bytes after the last value", self.left)));
        }
        let MatStream::Packed(packed) = &mut self.stream else {
            return Ok(());
        };
        match packed.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.refused("bytes after the matrix in a compressed element")),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    /// Describes the location of the next byte.
    pub(super) fn location(&self) -> String {
        match self.element {
            Some(element) => format!("byte {} of the data compressed at byte {element}", self.position),
            None => format!("byte {}", self.position),
        }
    }

    pub(super) fn refused(&self, problem: impl Into<String>) -> FormatError {
        let error = FormatError::format(&self.path, problem);
        error.at(self.location()).hint("download the file again")
    }

    fn unreadable(&self, error: io::Error) -> FormatError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.refused("the data ends early"),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                self.refused(format!("the compressed data is damaged ({error})"))
            }
            _ => FormatError::new(&self.path, error).at(self.location()),
        }
    }
}
