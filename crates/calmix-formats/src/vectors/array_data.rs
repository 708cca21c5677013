//! The location of an array's items: in a file or in an archive.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::read_at::{ReadAt, ReadFrom};

/// The location of an array's items.
#[derive(Debug)]
pub(super) enum ArrayData {
    /// In a file, between two positions.
    InFile { file: Arc<ReadAt>, start: u64, end: u64 },
    /// In an archive, after a header of this many bytes.
    Zipped { entry: ZipEntry, header: u64 },
}

impl ArrayData {
    /// Makes a reader that starts `skipped` bytes after the first item.
    pub(super) fn reader(&self, skipped: u64) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::InFile { file, start, end } => {
                Ok(Box::new(BufReader::with_capacity(1 << 16, ReadFrom::new(file, start + skipped, *end))))
            }
            Self::Zipped { entry, header } => {
                let mut reader = entry.reader();
                let skipped = header + skipped;
                if io::copy(&mut reader.by_ref().take(skipped), &mut io::sink())? < skipped {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(Box::new(reader))
            }
        }
    }
}

/// A member of an archive.
#[derive(Debug, Clone)]
pub(super) struct ZipEntry {
    pub(super) file: Arc<ReadAt>,
    pub(super) start: u64,
    pub(super) packed: u64,
    pub(super) size: u64,
    pub(super) deflated: bool,
    pub(super) checksum: u32,
}

impl ZipEntry {
    /// Makes a reader for the member, which checks its end when it is reached.
    pub(super) fn reader(&self) -> EntryReader {
        let packed = ReadFrom::new(&self.file, self.start, self.start.saturating_add(self.packed));
        let packed = BufReader::with_capacity(1 << 16, packed);
        let from: Box<dyn Read + Send> =
            if self.deflated { Box::new(DeflateDecoder::new(packed)) } else { Box::new(packed) };
        EntryReader { from, left: self.size, crc: Crc::new(), checksum: self.checksum }
    }
}

/// A reader for a member of an archive, which verifies the length and checksum in the directory.
pub(super) struct EntryReader {
    from: Box<dyn Read + Send>,
    left: u64,
    crc: Crc,
    checksum: u32,
}

impl Read for EntryReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let limit = self.left.min(into.len() as u64) as usize;
        if limit == 0 {
            return Ok(0);
        }
        let count = self.from.read(&mut into[..limit])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.crc.update(&into[..count]);
        self.left -= count as u64;
        if self.left == 0 {
            let damaged = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
            if self.from.read(&mut [0])? != 0 {
                return damaged("an array expands beyond its length");
            }
            if self.crc.sum() != self.checksum {
                return damaged("an array has another checksum than the archive says");
            }
        }
        Ok(count)
    }
}
