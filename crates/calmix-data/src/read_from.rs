//! A part of a file, read in order by positioned reads.
//!
//! Not mapped into memory: that would need `unsafe`, and a file that becomes shorter while it is read would end the process
//! with SIGBUS instead of an error.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::dataset::ReadAt;
use crate::error::{DataError, DataProblem};

/// Bytes of a file, from one position to another.
#[derive(Debug)]
pub(crate) struct ReadFrom {
    file: Arc<ReadAt>,
    at: u64,
    end: u64,
}

impl ReadFrom {
    pub(crate) fn new(file: &Arc<ReadAt>, at: u64, end: u64) -> Self {
        Self { file: Arc::clone(file), at, end }
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
