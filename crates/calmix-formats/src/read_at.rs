//! Positional reads: random access from any number of threads, and readers for parts of a file.
//!
//! Files are not memory-mapped: that would need `unsafe`, and a file that shrinks while it is read would end the process
//! with SIGBUS instead of an error.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use calmix_io::safe_open::hollow_problem;
use calmix_io::system;
use calmix_io::transient::is_transient;

use crate::error::{FormatError, FormatProblem};

/// The number of consecutive failed reads that are retried.
const RETRIES: u32 = 3;

/// The interval for marking a cached file as used: shorter than a run trains on a block.
const COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// A regular file below a root, open for positional reads.
#[derive(Debug)]
pub struct ReadAt {
    path: PathBuf,
    /// Reopened after an outage, because a handle may be stale after a file server restarts.
    file: RwLock<File>,
    length: u64,
    /// Set for a file of a cache.
    uses: Option<CountedUse>,
}

/// The recording of uses of a cached file.
#[derive(Debug)]
struct CountedUse {
    mark_used: fn(&File),
    last: Mutex<Instant>,
}

impl ReadAt {
    /// Opens `root/relative`. `root` is canonical; links may lead anywhere below it, but not out of it.
    ///
    /// # Errors
    /// If it is not a regular file below `root`, or nearly all holes.
    pub fn open(root: &Path, relative: &str) -> Result<Self, FormatError> {
        let named = root.join(relative);
        let failed = |error| FormatError::new(&named, error);
        let path = named.canonicalize().map_err(failed)?;
        if !path.starts_with(root) {
            return Err(FormatError::content(&named, format!("a link that leads out of {}", root.display()))
                .hint("replace the link with a copy, or pass the folder it leads to"));
        }
        // A pipe would block the open itself.
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(FormatError::format(&named, "not a regular file"));
        }
        let file = File::open(&path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        if let Some(problem) = hollow_problem(&file, &found) {
            return Err(FormatError::limit(&named, problem));
        }
        Ok(Self { path: named, file: RwLock::new(file), length: found.len(), uses: None })
    }

    /// Wraps an open file of a cache; `path` is for messages. Reads call `mark_used` regularly, because unused files are
    /// evicted first.
    ///
    /// # Errors
    /// If its length cannot be determined.
    pub fn from_cache(path: PathBuf, file: File, mark_used: fn(&File)) -> Result<Self, FormatError> {
        let length = file.metadata().map_err(|error| FormatError::new(&path, error))?.len();
        let uses = CountedUse { mark_used, last: Mutex::new(Instant::now()) };
        Ok(Self { path, file: RwLock::new(file), length, uses: Some(uses) })
    }

    /// Marks the file as used, unless this was done a moment ago.
    fn touch(&self) {
        let Some(uses) = &self.uses else { return };
        let Ok(mut last) = uses.last.try_lock() else { return };
        if last.elapsed() > COUNT_INTERVAL {
            *last = Instant::now();
            (uses.mark_used)(&self.handle());
        }
    }

    /// Returns whether the file was removed since it was opened.
    pub fn is_removed(&self) -> bool {
        system::link_count(&self.handle()).is_ok_and(|count| count == 0)
    }

    fn handle(&self) -> RwLockReadGuard<'_, File> {
        self.file.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path under which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reopens the file for the next attempt, unless a read still hangs on the old handle. Bytes are verified whenever they
    /// are read.
    fn reopen(&self) {
        if let (Ok(mut file), Ok(anew)) = (self.file.try_write(), File::open(&self.path)) {
            *file = anew;
        }
    }

    /// Returns its length in bytes when it was opened.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    /// If the file ends before them, or the storage fails several times in a row.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), FormatError> {
        self.touch();
        let read = |buffer: &mut [u8], offset| system::read_at(&self.handle(), buffer, offset);
        fill(buffer, offset, read).map_err(|error| {
            if is_transient(&error) {
                self.reopen();
            }
            let eof = error.kind() == io::ErrorKind::UnexpectedEof;
            let problem = if eof {
                FormatProblem::Changed("the file ends before the bytes that were prepared here".into())
            } else {
                FormatProblem::Io(error)
            };
            let error = FormatError::new(&self.path, problem).at(format!("byte {offset}"));
            error.hint(if eof { "prepare the dataset again" } else { "check the disk" })
        })
    }
}

/// Fills `buffer` with as many reads as necessary. Interruptions, device errors and empty reads may be transient, especially
/// on network file systems, so each is retried a few times before it counts.
fn fill(
    mut buffer: &mut [u8],
    mut offset: u64,
    read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut failures = 0;
    while !buffer.is_empty() {
        let failure = match read(buffer, offset) {
            Ok(0) => io::ErrorKind::UnexpectedEof.into(),
            Ok(count) => {
                let rest = buffer.split_at_mut_checked(count);
                let next = offset.checked_add(count as u64);
                let (Some((_, rest)), Some(next)) = (rest, next) else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                (buffer, offset, failures) = (rest, next, 0);
                continue;
            }
            Err(error) => error,
        };
        if failures == RETRIES {
            return Err(failure);
        }
        failures += 1;
    }
    Ok(())
}

/// A reader for a range of a file.
#[derive(Debug)]
pub struct ReadFrom {
    file: Arc<ReadAt>,
    start: u64,
    at: u64,
    end: u64,
}

impl ReadFrom {
    /// Makes a reader for the bytes `start` to `end` of a file.
    pub fn new(file: &Arc<ReadAt>, start: u64, end: u64) -> Self {
        Self { file: Arc::clone(file), start, at: start, end }
    }

    /// Makes a reader for a whole file.
    pub fn full(file: &Arc<ReadAt>) -> Self {
        Self::new(file, 0, file.length())
    }
}

impl Read for ReadFrom {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.end.saturating_sub(self.at).min(into.len() as u64) as usize;
        self.file.read(&mut into[..count], self.at).map_err(|error| match error {
            FormatError { problem: FormatProblem::Io(error), .. } => error,
            other => io::Error::new(io::ErrorKind::UnexpectedEof, other.to_string()),
        })?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for ReadFrom {
    /// Positions are relative to the start of the range.
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

/// Classifies the error of a read: missing or damaged bytes are the file's fault, everything else the storage's.
pub fn read_error(path: &Path, error: io::Error) -> FormatError {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => {
            FormatError::format(path, "the file ends before its last row").hint("write it again")
        }
        InvalidData | InvalidInput => FormatError::format(path, error.to_string()).hint("write it again"),
        _ => FormatError::new(path, error),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn short_reads_and_transient_failures_are_retried() {
        let source: Vec<u8> = (0..100).collect();
        let call = Cell::new(0_usize);
        let read = |buffer: &mut [u8], offset: u64| {
            let n = call.replace(call.get() + 1);
            match n % 4 {
                0 => Err(io::ErrorKind::Interrupted.into()),
                1 => Err(io::Error::other("EIO")),
                2 => Ok(0),
                _ => {
                    let count = buffer.len().min(7);
                    buffer[..count].copy_from_slice(&source[offset as usize..][..count]);
                    Ok(count)
                }
            }
        };
        let mut buffer = [0; 60];
        fill(&mut buffer, 40, read).unwrap();
        assert_eq!(buffer, source[40..]);
        assert_eq!(call.get(), 4 * 60_usize.div_ceil(7), "three failures before each read of some bytes");
    }

    #[test]
    fn lasting_failures_end_after_three_more_attempts() {
        let cases: [fn() -> io::Result<usize>; 2] = [|| Err(io::ErrorKind::Interrupted.into()), || Ok(0)];
        let kinds = cases.map(|failure| {
            let calls = Cell::new(0);
            let read = |_: &mut [u8], _| {
                calls.set(calls.get() + 1);
                failure()
            };
            let error = fill(&mut [0; 4], 0, read).unwrap_err();
            (error.kind(), calls.get())
        });
        assert_eq!(kinds, [(io::ErrorKind::Interrupted, 4), (io::ErrorKind::UnexpectedEof, 4)]);
        assert!(fill(&mut [], u64::MAX, |_, _| Ok(0)).is_ok());
        assert!(fill(&mut [0; 2], u64::MAX, |_, _| Ok(1)).is_err(), "an offset beyond the last is an error");
    }

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
