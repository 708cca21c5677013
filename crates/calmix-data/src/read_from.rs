//! A part of a file as a reader, by positioned reads.
//!
//! Not mapped into memory: that would need `unsafe`, and a file that becomes shorter while it is read would end the process
//! with SIGBUS instead of an error.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use crate::dataset::ReadAt;
use crate::error::{DataError, DataProblem};

/// Bytes of a file, from one position to another.
#[derive(Debug)]
pub(crate) struct ReadFrom {
    file: Arc<ReadAt>,
    start: u64,
    at: u64,
    end: u64,
}

impl ReadFrom {
    pub(crate) fn new(file: &Arc<ReadAt>, start: u64, end: u64) -> Self {
        Self { file: Arc::clone(file), start, at: start, end }
    }

    pub(crate) fn whole(file: &Arc<ReadAt>) -> Self {
        Self::new(file, 0, file.length())
    }
}

impl Read for ReadFrom {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.end.saturating_sub(self.at).min(into.len() as u64) as usize;
        self.file.read(&mut into[..count], self.at).map_err(|error| match error {
            DataError::File { problem: DataProblem::Io(error), .. } => error,
            other => io::Error::new(io::ErrorKind::UnexpectedEof, other.to_string()),
        })?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for ReadFrom {
    /// Positions are counted from the start of the part.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(on) => self.start.checked_add(on),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.filter(|&at| at >= self.start).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at - self.start)
    }
}

/// The error of a read: bytes that are missing or damaged are the file's fault, everything else is the storage's.
pub(crate) fn read_error(path: &Path, error: io::Error) -> DataError {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => {
            let problem = "the file ends before its last row".to_owned();
            DataError::new(path, DataProblem::Format(problem)).hint("write it again")
        }
        InvalidData | InvalidInput => {
            DataError::new(path, DataProblem::Format(error.to_string())).hint("write it again")
        }
        _ => DataError::new(path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_file_is_read_and_sought_within_its_bounds() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), b"0123456789").unwrap();
        let root = folder.path().canonicalize().unwrap();
        let file = Arc::new(ReadAt::open(&root, "file").unwrap());
        let mut part = ReadFrom::new(&file, 2, 7);
        let mut rest = |to: SeekFrom| -> io::Result<(u64, String)> {
            let at = part.seek(to)?;
            let mut text = String::new();
            part.read_to_string(&mut text)?;
            Ok((at, text))
        };
        assert_eq!(rest(SeekFrom::Start(1)).unwrap(), (1, "3456".to_owned()));
        assert_eq!(rest(SeekFrom::Current(-2)).unwrap(), (3, "56".to_owned()));
        assert_eq!(rest(SeekFrom::End(-1)).unwrap(), (4, "6".to_owned()));
        assert_eq!(rest(SeekFrom::End(1)).unwrap(), (6, String::new()), "behind its end there is nothing");
        rest(SeekFrom::End(-6)).unwrap_err();
        rest(SeekFrom::Start(u64::MAX)).unwrap_err();
    }
}
