//! Turns published files into a [prepared dataset](crate::manifest), with a summary of the scan.

mod duplicates;
mod findings;
mod labelled_groups;
mod report;
mod source_stamp;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use std::{fs, io, thread};

use calmix_cloud::CloudUrl;
use calmix_formats::source_dir::Count;
use calmix_formats::vectors::VectorOptions;
use calmix_io::atomic_file::rename_folder;
use calmix_io::scratch_folder::ScratchFolder;

pub use duplicates::copies_of;
pub use findings::Findings;
pub use report::{ClassCount, Report, SubsetReport};
pub use source_stamp::{SourceStamp, Stale};

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::loader::Warn;
use crate::manifest::{Prepared, parent_of, scratch_beside};
use crate::prepare_progress::PrepareProgress;
use crate::source::{
    Cifar100Labels, Inspection, SourceSpec, cifar, folder, idx, imagenet, images, labels_csv, parquet_images,
    stl10, svhn, vectors, webdataset, webvision,
};

/// The interval for checking the stop flag and sending progress.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Attempts to delete the folder while the thread still writes; after the first, the thread has no folder to write to.
const TRIES: usize = 10;

/// Scans the files below `root` once, writes the prepared dataset and its summary to `target`, and returns the summary.
///
/// # Errors
/// If the files do not match `source`, or nothing can be written to `target`. Single images that cannot be
/// read are left out and listed in the summary instead.
pub fn prepare(source: &SourceSpec, root: &Path, target: &Path) -> Result<Report, DataError> {
    prepare_watched(source, root, target, None, Arc::default())
}

/// Prepares as [`prepare`] does, and counts the files read in `progress`. If `scans` is a folder, a killed preparation of
/// shards continues with the shards that it has not read.
pub fn prepare_watched(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    scans: Option<PathBuf>,
    progress: Arc<PrepareProgress>,
) -> Result<Report, DataError> {
    if target.exists() {
        let problem = "this path already exists";
        return Err(DataError::content(target, problem).hint("choose another folder, or remove this one"));
    }
    if CloudUrl::is_url(root) && !matches!(source, SourceSpec::Webdataset { .. }) {
        let problem = "only WebDataset's shards (.tar) are read from object storage";
        let hint = "pack the images into shards, or copy the dataset to a local folder";
        return Err(DataError::content(root, problem).hint(hint));
    }
    // Taken before the files are read, so that a change during the scan is noticed later.
    let stamp = SourceStamp::take(source, root)?;
    let scratch = scratch_beside(target)?;
    let made = scratch.path().join("prepared");
    let prepared = scan(source, root, &made, scans, progress)?;
    let mut report = Report::new(&Dataset::open(&made, root)?, prepared.unreadable)?;
    report.warnings.splice(0..0, prepared.warnings);
    findings::write_json(&made.join(Findings::FILE), &report)?;
    stamp.write(&made)?;
    rename_folder(&made, target).map_err(|error| DataError::new(target, error))?;
    Ok(report)
}

/// Prepares the files below `root` into `target`, unless `stop` becomes true first. `progress` receives the number of files
/// read so far, and the total once it is known. Returns `None` if it was stopped.
///
/// The work is done by a thread in a temporary folder: even if the thread waits for a disk or a network, this function
/// returns soon after the stop, and the end of the process ends the thread.
pub fn prepare_interruptibly(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    stop: &AtomicBool,
    warn: Warn,
    mut progress: impl FnMut(u64, Option<u64>),
) -> Result<Option<Report>, DataError> {
    let scratch = scratch_beside(target)?;
    let prepared = scratch.path().join("prepared");
    // Kept until the table exists, so that a stopped or killed preparation of shards can continue.
    let scans = parent_of(target)
        .join(format!(".scanned-{}", target.file_name().unwrap_or_default().to_string_lossy()));
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
                // Most sources have no such folder.
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
                // The thread panicked and printed its message to standard error.
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

fn scan(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    scans: Option<PathBuf>,
    progress: Arc<PrepareProgress>,
) -> Result<Prepared, DataError> {
    let inspection = Inspection { progress: Some(progress), scans, ..Inspection::default() };
    let official = Count::Official;
    match source {
        SourceSpec::Cifar10 => cifar::prepare(root, target, cifar::Variant::Cifar10, official),
        SourceSpec::Cifar100 { labels } => {
            let variant = match labels {
                Cifar100Labels::Fine => cifar::Variant::Cifar100Fine,
                Cifar100Labels::Coarse => cifar::Variant::Cifar100Coarse,
            };
            cifar::prepare(root, target, variant, official)
        }
        SourceSpec::Idx { classes } => idx::prepare(root, target, *classes),
        SourceSpec::Svhn { extra } => svhn::prepare(root, target, *extra),
        SourceSpec::Stl10 => stl10::prepare(root, target, official),
        SourceSpec::Folder { layout, shrink, groups } => {
            let inspection = Inspection { shrink: *shrink, ..inspection };
            let options = folder::FolderOptions { inspection, layout: *layout, groups: *groups };
            folder::prepare(root, target, &options)
        }
        SourceSpec::LabelsCsv { unlisted, columns, shrink } => {
            let inspection = Inspection { shrink: *shrink, ..inspection };
            let options =
                labels_csv::LabelsCsvOptions { inspection, unlisted: *unlisted, columns: columns.clone() };
            labels_csv::prepare(root, target, &options)
        }
        SourceSpec::Images { shrink } => {
            let inspection = Inspection { shrink: *shrink, ..inspection };
            images::prepare(root, target, &inspection)
        }
        SourceSpec::Webdataset { unlabelled } => {
            let options =
                webdataset::WebdatasetOptions { inspection, classes: None, unlabelled: *unlabelled };
            webdataset::prepare(root, target, &options)
        }
        SourceSpec::Parquet { columns } => {
            let options = parquet_images::ParquetOptions { inspection, columns: columns.clone() };
            parquet_images::prepare(root, target, &options)
        }
        SourceSpec::Imagenet => {
            let options = imagenet::ImagenetOptions { inspection, ..imagenet::ImagenetOptions::default() };
            imagenet::prepare(root, target, &options)
        }
        SourceSpec::Webvision => webvision::prepare(root, target, &inspection),
        SourceSpec::Vectors { labels, more_features, vector_column, columns } => {
            let options = VectorOptions { vector_column: vector_column.clone(), columns: columns.clone() };
            vectors::prepare(
                &vectors::feature_paths(root, more_features),
                target,
                labels.as_deref().map(Path::new),
                &options,
                inspection.progress.as_deref(),
            )
        }
    }
}
