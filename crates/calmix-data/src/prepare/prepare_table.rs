//! Preparing the table of a dataset, interruptibly: a stop ends it at once and deletes the partial table. What was read of
//! shards is kept.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use std::{fs, io, thread};

use calmix_io::atomic_file::rename_folder;
use calmix_io::scratch_folder::ScratchFolder;

use super::{Report, prepare_watched};
use crate::error::DataError;
use crate::loader::Warn;
use crate::manifest::PREPARING;
use crate::prepare_progress::PrepareProgress;
use crate::source::SourceSpec;

/// The interval at which the stop flag is checked and progress is sent.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Attempts to delete the folder while the thread still writes; after the first, the thread has no folder to write to.
const TRIES: usize = 10;

/// Prepares the files below `root` into `target`, unless `stop` becomes true first. `progress` receives the files read so far,
/// and how many there are once they are counted. Returns `None` if it was stopped.
///
/// A thread does it in a temporary folder: even if the thread waits for a disk or a network, this function returns soon
/// after the stop, and the end of the process ends the thread.
///
/// # Errors
/// If the dataset cannot be read, or the table cannot be written.
pub fn prepare_table(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    stop: &AtomicBool,
    warn: Warn,
    mut progress: impl FnMut(u64, Option<u64>),
) -> Result<Option<Report>, DataError> {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = ScratchFolder::new(parent, PREPARING)?;
    let prepared = scratch.path().join("prepared");
    // Kept until the table is there: a preparation of shards that is stopped or killed continues.
    let scans = parent.join(format!(".scanned-{}", target.file_name().unwrap_or_default().to_string_lossy()));
    let counter = Arc::new(PrepareProgress::default());
    counter.set_warn(warn);
    let (done, report) = channel();
    let thread = {
        let source = source.clone();
        let root = root.to_owned();
        let prepared = prepared.clone();
        let scans = matches!(source, SourceSpec::Webdataset { .. }).then(|| scans.clone());
        let counter = Arc::clone(&counter);
        thread::spawn(move || {
            // Fails if the stop came first and the receiver is gone.
            let _ = done.send(prepare_watched(&source, &root, &prepared, scans, counter));
        })
    };
    loop {
        match report.recv_timeout(POLL_INTERVAL) {
            Ok(report) => {
                let report = report?;
                rename_folder(&prepared, target).map_err(|error| DataError::new(target, error))?;
                // There is none for most sources.
                let _ = fs::remove_dir_all(&scans);
                return Ok(Some(report));
            }
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                remove(&scratch);
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) => {
                let (files, total) = counter.now();
                progress(files, (total > 0).then_some(total));
            }
            Err(RecvTimeoutError::Disconnected) => {
                // The thread panicked, and its message is on standard error.
                let _ = thread.join();
                let error = io::Error::other("preparing the dataset failed");
                return Err(DataError::new(root, error));
            }
        }
    }
}

fn remove(folder: &ScratchFolder) {
    for _ in 0..TRIES {
        if folder.remove().is_ok() {
            return;
        }
    }
}
