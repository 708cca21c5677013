//! Preparing a dataset, interruptibly: Ctrl-C ends it immediately and deletes the partial table.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use anyhow::Result;
use calmix::core::shown::shown;
use calmix::data::error::DataError;
use calmix::data::prepare::{PREPARING, PrepareProgress, Report, SourceSpec, prepare_watched};
use calmix::io::atomic_file::rename_folder;
use tempfile::TempDir;

use crate::predict::rate::Rate;
use crate::stop::{POLL_INTERVAL, Stop};
use crate::terminal::{clear_line, warn_at_once};

/// Attempts to delete the folder while the thread still writes; after the first, the thread has no folder to write to.
const TRIES: usize = 10;

/// The user interrupted the preparation.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted; the partly prepared dataset was deleted")
    }
}

impl std::error::Error for Interrupted {}

/// Prepares the files below `root` into `target`, unless a signal comes first.
///
/// A thread does it in a temporary folder: even if the thread waits for a disk or a network, this function returns soon
/// after a signal, and the end of the process ends the thread.
pub(crate) fn prepare_or_stop(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    stop: &Stop,
) -> Result<Report> {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new()
        .prefix(PREPARING)
        .tempdir_in(parent)
        .map_err(|error| DataError::new(parent, error))?;
    let prepared = scratch.path().join("prepared");
    let (done, report) = channel();
    let progress = Arc::new(PrepareProgress::default());
    progress.set_warn(Arc::new(|text: &str| warn_at_once(text)));
    let mut rate = Rate::of_silent_command();
    let (source, from, to) = (source.clone(), root.to_owned(), prepared.clone());
    let counted = Arc::clone(&progress);
    let thread = thread::spawn(move || {
        // Fails if a signal came first and the receiver is gone.
        let _ = done.send(prepare_watched(&source, &from, &to, counted));
    });
    loop {
        match report.recv_timeout(POLL_INTERVAL) {
            Ok(report) => {
                clear_line();
                let report = report?;
                rename_folder(&prepared, target).map_err(|error| DataError::new(target, error))?;
                return Ok(report);
            }
            Err(RecvTimeoutError::Timeout) if stop.flag().load(Ordering::Relaxed) => {
                clear_line();
                remove(&scratch);
                return Err(Interrupted.into());
            }
            Err(RecvTimeoutError::Timeout) => {
                let (done, total) = progress.now();
                rate.show(done, (total > 0).then_some(total));
            }
            Err(RecvTimeoutError::Disconnected) => {
                // The thread panicked, and its message is on standard error.
                let _ = thread.join();
                anyhow::bail!("{}: preparing the dataset failed", shown(root.display()));
            }
        }
    }
}

fn remove(folder: &TempDir) {
    for _ in 0..TRIES {
        if fs::remove_dir_all(folder.path()).is_ok() {
            return;
        }
    }
}
