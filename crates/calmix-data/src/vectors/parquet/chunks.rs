//! The bytes of a Parquet file, for the crate that decodes them: only as many at once as a page may have.

use std::io::{BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::super::read_from::ReadFrom;
use crate::dataset::ReadAt;

/// Bytes of the largest page, compressed or not; writers make pages of a megabyte.
pub(super) const LARGEST_PAGE: u64 = 256 << 20;

/// A Parquet file.
#[derive(Debug)]
pub(super) struct Chunks {
    file: Arc<ReadAt>,
}

impl Chunks {
    pub(super) fn new(file: ReadAt) -> Self {
        Self { file: Arc::new(file) }
    }

    pub(super) fn length(&self) -> u64 {
        self.file.length()
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.file.length()
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<ReadFrom>;

    /// Called where the header of a page begins, and for the eight bytes at the end of the file.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let from = |capacity| {
            BufReader::with_capacity(capacity, ReadFrom::new(&self.file, start, self.file.length()))
        };
        let mut header = Vec::new();
        from(32).take(32).read_to_end(&mut header)?;
        // The crate allocates what the header says before it decompresses.
        if let Some(length) = uncompressed_length(&header).filter(|&length| length > LARGEST_PAGE)
            && start + 8 < self.file.length()
        {
            return Err(too_large(length));
        }
        Ok(from(1 << 12))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if length as u64 > LARGEST_PAGE {
            return Err(too_large(length as u64));
        }
        let end = start.checked_add(length as u64).filter(|&end| end <= self.file.length());
        if end.is_none() {
            return Err(ParquetError::EOF("a page that is not inside the file".into()));
        }
        let mut bytes = vec![0; length];
        self.file.read(&mut bytes, start).map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(bytes.into())
    }
}

fn too_large(length: u64) -> ParquetError {
    ParquetError::General(format!("a page of {length} bytes, expected at most {LARGEST_PAGE}"))
}

/// The second field of a page's header, its length without compression: the header is a Thrift struct in the compact
/// protocol whose first fields are whole numbers, each after a byte `0x15` and as a varint in zigzag.
fn uncompressed_length(header: &[u8]) -> Option<u64> {
    let mut bytes = header.iter().copied();
    let mut value = 0;
    for _ in 0..2 {
        if bytes.next()? != 0x15 {
            return None;
        }
        value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = bytes.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
    }
    Some(value >> 1)
}
