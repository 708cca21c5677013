//! The bytes of an image file, read within a size limit and counted in the memory budget of large files.

use std::fs::{self, File};
use std::io::Read;
use std::ops::Deref;
use std::path::Path;

use calmix_io::safe_open::hollow_problem;

use super::problem::{DecodeLimits, DecodeProblem};
use crate::error::FormatProblem;
use crate::memory_budget::{ENCODED, Lease};

/// The bytes of a file.
#[derive(Debug)]
pub struct EncodedFile {
    bytes: Vec<u8>,
    /// The share of the memory budget for large files, held while the bytes exist.
    _lease: Option<Lease>,
}

impl Deref for EncodedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl EncodedFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is not a regular file, longer than the limits, nearly all holes, or cannot be read.
    pub fn read(path: &Path, limits: &DecodeLimits) -> Result<Self, FormatProblem> {
        // Checked before opening, because opening a pipe could block forever.
        if !fs::metadata(path)?.is_file() {
            return Err(FormatProblem::Content("not a regular file".into()));
        }
        let file = File::open(path)?;
        let found = file.metadata()?;
        if found.len() > limits.bytes {
            return Err(DecodeProblem::Bytes(found.len()).into());
        }
        if let Some(problem) = hollow_problem(&file, &found) {
            return Err(FormatProblem::Limit(problem));
        }
        let lease = ENCODED.lease(found.len());
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(found.len() as usize).map_err(std::io::Error::from)?;
        // The file may have grown in the meantime.
        file.take(limits.bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limits.bytes {
            return Err(DecodeProblem::Bytes(bytes.len() as u64).into());
        }
        Ok(Self { bytes, _lease: lease })
    }

    /// Reads `length` bytes of an open file from its current position.
    ///
    /// # Errors
    /// If this exceeds the limits, or the file has fewer bytes.
    pub fn read_member(file: File, length: u64, limits: &DecodeLimits) -> Result<Self, FormatProblem> {
        if length > limits.bytes {
            return Err(DecodeProblem::Bytes(length).into());
        }
        let lease = ENCODED.lease(length);
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == length {
            Ok(Self { bytes, _lease: lease })
        } else {
            Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the budget, as many threads as cores could each hold a file of 256 MiB.
    #[test]
    fn large_file_takes_its_share_of_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.jpg");
        let length = (4 << 20) + 1;
        fs::write(&path, vec![1; length]).unwrap();
        let limits = DecodeLimits::default();
        let has_share = |EncodedFile { _lease: lease, .. }: EncodedFile| lease.is_some();
        assert!(has_share(EncodedFile::read(&path, &limits).unwrap()));
        let member = |length| EncodedFile::read_member(File::open(&path).unwrap(), length, &limits).unwrap();
        assert!(has_share(member(length as u64)));
        assert!(!has_share(member(1 << 20)));
    }
}
