//! The bytes of a Parquet file for the crate that decodes them, and its decoded pages. Both are bounded: a page of a few
//! bytes can claim billions of values.

use std::io::{BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::expansion;
use crate::read_at::{ReadAt, ReadFrom};

/// The maximum size of a page, compressed or not; writers make pages of a megabyte.
const MAX_PAGE_BYTES: u64 = 256 << 20;

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

    /// Called at the header of a page, and for the eight bytes at the end of the file.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let from = |capacity| {
            BufReader::with_capacity(capacity, ReadFrom::new(&self.file, start, self.file.length()))
        };
        let mut header = Vec::new();
        from(32).take(32).read_to_end(&mut header)?;
        // The crate allocates the size in the header before it decompresses.
        if let Some([unpacked, packed]) = page_lengths(&header)
            && start + 8 < self.file.length()
            && (unpacked > MAX_PAGE_BYTES || !expansion::is_plausible(packed, unpacked))
        {
            return Err(too_large(unpacked));
        }
        Ok(from(1 << 12))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if length as u64 > MAX_PAGE_BYTES {
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
    ParquetError::General(format!(
        "a page of {length} bytes: expected at most {MAX_PAGE_BYTES}, and fewer if it is compressed to a hundredth"
    ))
}

/// Reads the uncompressed and the compressed length from the header of a page. The header is a Thrift struct in the compact
/// protocol; its first three fields are integers, each a byte `0x15` followed by a zigzag varint, and the lengths are the
/// second and the third.
fn page_lengths(header: &[u8]) -> Option<[u64; 2]> {
    let mut bytes = header.iter().copied();
    let mut fields = [0_u64; 3];
    for field in &mut fields {
        if bytes.next()? != 0x15 {
            return None;
        }
        let mut is_whole = false;
        for shift in (0..35).step_by(7) {
            let byte = bytes.next()?;
            *field |= u64::from(byte & 0x7f) << shift;
            is_whole = byte < 0x80;
            if is_whole {
                break;
            }
        }
        if !is_whole {
            // Longer than any 32-bit number; the crate would read on, and allocate the result.
            return Some([u64::MAX, 0]);
        }
    }
    let [_, unpacked, packed] = fields;
    Some([unpacked >> 1, packed >> 1])
}

/// Counts the values of the pages, and fails if they exceed the rows of their row group.
pub(super) struct CountedPages {
    pages: Box<dyn PageReader>,
    /// The number of values that the remaining pages may have.
    left: u64,
}

impl CountedPages {
    /// Allows slightly more than `numbers` values, so that the row with too long a vector can be named.
    pub(super) fn new(pages: impl PageReader + 'static, numbers: u64) -> Self {
        Self { pages: Box::new(pages), left: numbers.saturating_add(1 << 20) }
    }
}

impl Iterator for CountedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CountedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = self.pages.get_next_page()? else { return Ok(None) };
        let numbers = u64::from(page.num_values());
        let left = match &page {
            // A dictionary may have unused entries, but not more than bytes.
            Page::DictionaryPage { buf, .. } => Some(self.left).filter(|_| numbers <= buf.len() as u64),
            _ => self.left.checked_sub(numbers),
        };
        self.left = left.ok_or_else(|| {
            ParquetError::General(format!("a page of {numbers} numbers, more than its rows can have"))
        })?;
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_from_the_header_of_a_page() {
        assert_eq!(page_lengths(b"\x15\x00\x15\x80\x01\x15\x7e\x2c"), Some([64, 63]));
        assert_eq!(page_lengths(b"\x15\x00\x15\xfe\xff\xff\xff\x0f\x15\x02"), Some([i32::MAX as u64, 1]));
        let overlong = [&b"\x15\x04\x15"[..], &[0x91; 16], b"\x80\x0a\x15\x8c\x0a"].concat();
        assert_eq!(page_lengths(&overlong), Some([u64::MAX, 0]));
        for other in [&b""[..], b"\x15", b"\x15\x00\x15\x80", b"\x25\x00\x15\x00\x15\x00"] {
            assert_eq!(page_lengths(other), None);
        }
    }
}
