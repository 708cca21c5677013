//! A file of a dataset as a reader, for formats that are read through one.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use super::Dataset;
use super::parts::OpenPart;
use crate::error::{DataError, DataProblem};

/// A part of a dataset, open.
#[derive(Debug)]
pub(crate) struct PartReader {
    part: Arc<OpenPart>,
    at: u64,
}

impl Dataset {
    /// Opens a part from its beginning; one in object storage is fetched unless it is in the cache.
    ///
    /// # Errors
    /// If it cannot be opened, or has another length than when it was prepared.
    pub(crate) fn part_reader(&self, index: u32) -> Result<PartReader, DataError> {
        Ok(PartReader { part: self.parts.opened(index)?, at: 0 })
    }
}

impl Read for PartReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.part.file.length().saturating_sub(self.at);
        let count = left.min(into.len() as u64) as usize;
        let Some(into) = into.get_mut(..count) else { return Ok(0) };
        self.part.file.read(into, self.at).map_err(|error| match error {
            DataError::File { problem: DataProblem::Io(error), .. } => error,
            other => io::Error::new(io::ErrorKind::UnexpectedEof, other.to_string()),
        })?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for PartReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(back) => self.part.file.length().checked_add_signed(back),
            SeekFrom::Current(on) => self.at.checked_add_signed(on),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
