//! A dataset being prepared: Ctrl-C ends it at once, and nothing is left of it.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use anyhow::Result;
use calmix::data::error::DataError;
use calmix::data::prepare::{Report, SourceSpec, prepare};
use tempfile::TempDir;

use crate::stop::{SOON, Stop};

/// As calmix-data has it: a run that is begun again sweeps such folders away.
const PREFIX: &str = ".preparing-";
/// How often removing is tried while a thread still writes; after the first time it finds no folder to write to.
const TRIES: usize = 10;

/// It was interrupted.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted; nothing is left of what was being prepared")
    }
}

impl std::error::Error for Interrupted {}

/// Prepares the files below `root` to `target`, unless a signal comes first.
///
/// A thread of its own does it, in a folder of its own: whatever it waits for (a disk, a network), this returns soon
/// after a signal, and the end of the process ends the thread.
pub(crate) fn prepare_or_stop(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    stop: &Stop,
) -> Result<Report> {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir_in(parent)
        .map_err(|error| DataError::new(parent, error))?;
    let prepared = scratch.path().join("prepared");
    let (done, report) = channel();
    let (source, from, to) = (source.clone(), root.to_owned(), prepared.clone());
    let thread = thread::spawn(move || {
        // Nobody listens any more if a signal came first.
        let _ = done.send(prepare(&source, &from, &to));
    });
    loop {
        match report.recv_timeout(SOON) {
            Ok(report) => {
                let report = report?;
                fs::rename(&prepared, target).map_err(|error| DataError::new(target, error))?;
                return Ok(report);
            }
            Err(RecvTimeoutError::Timeout) if stop.flag().load(Ordering::Relaxed) => {
                remove(&scratch);
                return Err(Interrupted.into());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                // It panicked, and has said so.
                let _ = thread.join();
                anyhow::bail!("{}: it could not be prepared", root.display());
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
