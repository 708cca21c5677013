//! Positional reads: random access without memory, from any number of threads.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use calmix_cloud::RemoteFolder;
use calmix_io::sparse_file::is_hollow;
use calmix_io::transient::is_transient;

use crate::error::{DataError, DataProblem};

/// How often in a row a read without result is tried again.
const RETRIES: u32 = 3;

/// The interval at which a file of the cache counts as used: shorter than a block is trained on.
const COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// A regular file below some root, open for positional reads.
#[derive(Debug)]
pub(crate) struct ReadAt {
    path: PathBuf,
    /// Reopened after an outage, because a handle of a file server that restarted may be stale.
    file: RwLock<File>,
    length: u64,
    /// When a file of the cache of shards was last counted as used; `None` for other files.
    counted: Option<Mutex<Instant>>,
}

impl ReadAt {
    /// Opens `root/relative`. `root` is canonical; links may lead anywhere below it and nowhere else.
    pub(crate) fn open(root: &Path, relative: &str) -> Result<Self, DataError> {
        let named = root.join(relative);
        let path = named.canonicalize().map_err(|error| DataError::new(&named, error))?;
        if !path.starts_with(root) {
            let problem = DataProblem::Content(format!("a link that leads out of {}", root.display()));
            return Err(DataError::new(&named, problem)
                .hint("replace the link with a copy, or pass the folder it leads to"));
        }
        // A pipe would block the open itself.
        let metadata = path.metadata().map_err(|error| DataError::new(&named, error))?;
        if !metadata.is_file() {
            return Err(DataError::new(&named, DataProblem::Format("not a regular file".into())));
        }
        let file = File::open(&path).map_err(|error| DataError::new(&named, error))?;
        let found = file.metadata().map_err(|error| DataError::new(&named, error))?;
        if is_hollow(&file, &found) {
            let problem =
                DataProblem::Limit(format!("a sparse file: {} bytes, nearly all of them holes", found.len()));
            return Err(DataError::new(&named, problem));
        }
        Ok(Self { path: named, file: RwLock::new(file), length: found.len(), counted: None })
    }

    /// An open file of the cache of shards; `path` names it in messages.
    pub(crate) fn of_cache(path: PathBuf, file: File) -> Result<Self, DataError> {
        let length = file.metadata().map_err(|error| DataError::new(&path, error))?.len();
        Ok(Self { path, file: RwLock::new(file), length, counted: Some(Mutex::new(Instant::now())) })
    }

    /// Counts a file of the cache as used now and then, because those that are not used leave first.
    fn count_use(&self) {
        let Some(mut counted) = self.counted.as_ref().and_then(|counted| counted.try_lock().ok()) else {
            return;
        };
        if counted.elapsed() > COUNT_INTERVAL {
            *counted = Instant::now();
            RemoteFolder::mark_used(&self.file.read().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether the file was removed since it was opened.
    pub(crate) fn is_removed(&self) -> bool {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        file.metadata().is_ok_and(|found| std::os::unix::fs::MetadataExt::nlink(&found) == 0)
    }

    /// The path under which it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// For the next attempt, unless a read still hangs on the old handle. The bytes are checked whenever they are read.
    fn open_anew(&self) {
        if let (Ok(mut file), Ok(anew)) = (self.file.try_write(), File::open(&self.path)) {
            *file = anew;
        }
    }

    /// Its length in bytes when it was opened.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Fills `buffer` with the bytes at `offset`.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), DataError> {
        self.count_use();
        let read = |buffer: &mut [u8], offset| {
            read_some(&self.file.read().unwrap_or_else(PoisonError::into_inner), buffer, offset)
        };
        fill(buffer, offset, read).map_err(|error| {
            if is_transient(&error) {
                self.open_anew();
            }
            let eof = error.kind() == io::ErrorKind::UnexpectedEof;
            let problem = if eof {
                DataProblem::Changed("the file ends before the bytes that were prepared here".into())
            } else {
                DataProblem::Io(error)
            };
            let error = DataError::new(&self.path, problem).at(format!("byte {offset}"));
            error.hint(if eof { "prepare the dataset again" } else { "check the disk" })
        })
    }
}

/// Fills `buffer` by as many reads as it takes. Interruptions, device errors and empty reads may be transient,
/// above all on network file systems, so each is tried again a few times before it counts.
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

#[cfg(unix)]
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
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
        assert_eq!(
            call.get(),
            4 * 60_usize.div_ceil(7),
            "three failures before each read that brings something"
        );
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
}
