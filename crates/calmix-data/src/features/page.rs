//! A page of a cache: the vectors of a few samples in some views, whole and checked or not at all.
//!
//! `CMXFEAT1`, the number of bytes of a vector, of views and of samples (u32 each), the views (two bytes each), the ids
//! (u64 each), a checksum of all that (CRC-32C), then the vectors, sample by sample and view by view, and their checksum.
//! Numbers are little-endian.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::FeatureView;
use crate::error::{DataError, DataProblem};

const MAGIC: &[u8; 8] = b"CMXFEAT1";
/// Samples of a page at most: those whose ids have the same quotient by it.
pub(super) const SAMPLES: usize = 256;
/// More views than any run keeps.
const MOST_VIEWS: usize = 513;
/// Bytes of the longest vector.
const LONGEST: usize = 1 << 20;

/// Which vectors a page has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub(super) bytes: usize,
    pub(super) views: Vec<FeatureView>,
    pub(super) ids: Vec<u64>,
}

impl PageHeader {
    /// What identifies the page within its cache.
    pub(super) fn name(&self) -> String {
        format!("{}.features", blake3::hash(&self.to_bytes()).to_hex().chars().take(24).collect::<String>())
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.bytes, self.views.len(), self.ids.len()] {
            bytes.extend((number as u32).to_le_bytes());
        }
        bytes.extend(self.views.iter().flat_map(|view| view.to_bytes()));
        bytes.extend(self.ids.iter().flat_map(|id| id.to_le_bytes()));
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// Bytes of all vectors.
    pub(super) fn vectors(&self) -> usize {
        self.bytes * self.views.len() * self.ids.len()
    }

    /// Reads the header of a file, which is then at its vectors.
    fn read(file: &mut File) -> Result<Self, DataProblem> {
        let damaged = || DataProblem::Changed("the page is damaged".to_owned());
        let mut start = [0; 20];
        file.read_exact(&mut start)?;
        let number = |n: usize| {
            let bytes = start.get(8 + 4 * n..12 + 4 * n).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_le_bytes) as usize
        };
        let (bytes, views, samples) = (number(0), number(1), number(2));
        let sane = start.starts_with(MAGIC)
            && (1..=LONGEST).contains(&bytes)
            && (1..=MOST_VIEWS).contains(&views)
            && (1..=SAMPLES).contains(&samples);
        if !sane {
            return Err(damaged());
        }
        let mut rest = vec![0; 2 * views + 8 * samples + 4];
        file.read_exact(&mut rest)?;
        let (names, rest) = rest.split_at(2 * views);
        let (ids, _) = rest.split_at(8 * samples);
        let views = names.as_chunks().0.iter().map(|&view| FeatureView::from_bytes(view));
        let views = views.collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
        let ids = ids.as_chunks().0.iter().map(|&id| u64::from_le_bytes(id)).collect();
        let header = Self { bytes, views, ids };
        // The checksum is the end of it.
        if header.to_bytes().ends_with(&rest[8 * samples..]) { Ok(header) } else { Err(damaged()) }
    }
}

/// The header of a page.
pub(super) fn read_header(path: &Path) -> Result<PageHeader, DataError> {
    let mut file = File::open(path).map_err(|error| DataError::new(path, error))?;
    PageHeader::read(&mut file).map_err(|problem| DataError::new(path, problem))
}

/// The header and the vectors of a page.
pub(super) fn read(path: &Path) -> Result<(PageHeader, Vec<u8>), DataError> {
    let wrong = |problem: DataProblem| DataError::new(path, problem);
    let mut file = File::open(path).map_err(|error| DataError::new(path, error))?;
    let header = PageHeader::read(&mut file).map_err(wrong)?;
    let length = header.vectors();
    let mut vectors = Vec::new();
    // One byte more than there may be shows what is too long.
    let most = length as u64 + 5;
    file.take(most).read_to_end(&mut vectors).map_err(|error| DataError::new(path, error))?;
    let damaged = || wrong(DataProblem::Changed("the page is damaged".to_owned()));
    if vectors.len() != length + 4 {
        return Err(damaged());
    }
    let checksum = vectors.split_off(length);
    if checksum != crc32c::crc32c(&vectors).to_le_bytes() {
        return Err(damaged());
    }
    Ok((header, vectors))
}

/// A page as bytes.
pub(super) fn to_bytes(header: &PageHeader, vectors: &[u8]) -> Vec<u8> {
    let mut bytes = header.to_bytes();
    bytes.extend_from_slice(vectors);
    bytes.extend(crc32c::crc32c(vectors).to_le_bytes());
    bytes
}
