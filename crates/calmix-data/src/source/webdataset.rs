//! WebDataset: tar shards in which the members of a sample are adjacent.
//!
//! A member's key is its name up to the first dot after the last slash; adjacent members with the same key form a sample: an
//! image (`.jpg`, `.jpeg`, `.png`, `.webp`) and its class, as a number in `.cls` or as `label` or `cls` in `.json`. Other
//! members, including pickles, are skipped; so are names without an extension, hidden members, and the format's own
//! `__notes__`, as in the package webdataset.
//!
//! Samples stay in place: a part is a shard, a record an offset into it. This gives random access to a streaming format
//! without unpacking.
//!
//! All `*.tar` below the root are shards, in name order. The split of a shard is named by its folder, or by a word of its
//! name delimited by `-`, `_` or `.` (`train`, `val`, `test`, `unlabelled` and their variants); the default is `train`. Keys
//! must be unique within a shard; they are not compared between shards.

mod kept_scans;
mod sample;
mod shard_scan;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use calmix_cloud::{CloudUrl, RemoteFolder};
use calmix_formats::error::FormatError;
use calmix_formats::labels::text::{HINT, numbered_classes};
use calmix_formats::listing::walk;
use calmix_io::safe_path;

use super::layout::{SPLITS, split};
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, Prepared};
use kept_scans::KeptScans;
pub use shard_scan::WebdatasetOptions;
use shard_scan::{FoundLabels, ScannedSample, ShardScan, TarShard};

/// Prepares the shards below `root` and writes the dataset to `target`.
///
/// One of several threads reads each shard once; the table is assembled from the scans in the order of the shards. With
/// [`Inspection::scans`](super::Inspection::scans), a killed preparation continues with the shards that it has not read.
///
/// # Errors
/// If a shard is not a sound archive, members of a sample are missing, doubled or contradict each other, none of the
/// images can be read, or `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, options: &WebdatasetOptions) -> Result<Prepared, DataError> {
    let mut left_out = Vec::new();
    let shards = find_shards(root, &mut left_out)?;
    let kept = KeptScans::new(options.inspection.scans.as_deref(), options);
    let scanned = scan_all(&shards, &kept, options)?;
    let classes = match &options.classes {
        Some(classes) => classes.clone(),
        None => count_classes(&shards, &scanned)?,
    };
    let mut builder = ManifestBuilder::new(target, classes, Encoding::File)?;
    builder.left_out(left_out);
    for (shard, scanned) in shards.iter().zip(scanned) {
        builder.continue_subset(shard.subset);
        let scan = match scanned.held.or_else(|| kept.read(shard)) {
            Some(scan) => scan,
            // Another process that prepared the same dataset has removed the scan meanwhile.
            None => shard.scan(options, &|| {})?,
        };
        for error in scan.unreadable {
            builder.unreadable(error);
        }
        if scan.samples.is_empty() {
            continue;
        }
        let part = builder.part(&shard.name, scan.length)?;
        for ScannedSample { offset, digest, label } in scan.samples {
            builder.digested_sample(part, offset, &digest, label)?;
        }
    }
    builder.finish_unless_empty(
        root,
        "none of the images in its shards could be read",
        "names of images must end in .jpg, .jpeg, .png or .webp",
    )
}

/// A shard that was read.
struct ScannedShard {
    labels: FoundLabels,
    /// The scan, unless it is stored on disk.
    held: Option<ShardScan>,
}

/// Reads all shards with several threads. The error is that of the first failing shard, independent of timing.
fn scan_all(
    shards: &[TarShard],
    kept: &KeptScans<'_>,
    options: &WebdatasetOptions,
) -> Result<Vec<ScannedShard>, DataError> {
    let slots: Vec<OnceLock<Result<ScannedShard, DataError>>> =
        shards.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let first_failed = AtomicUsize::new(usize::MAX);
    let work = || {
        while let n = next.fetch_add(1, Ordering::Relaxed)
            && let Some((shard, slot)) = shards.get(n).zip(slots.get(n))
            && n < first_failed.load(Ordering::Relaxed)
        {
            let scanned = scan_one(shard, kept, options);
            if scanned.is_err() {
                first_failed.fetch_min(n, Ordering::Relaxed);
            }
            // Only this thread has this index.
            let _ = slot.set(scanned);
        }
    };
    let threads = options.inspection.thread_count();
    thread::scope(|scope| {
        for _ in 1..threads.min(shards.len()) {
            scope.spawn(work);
        }
        work();
    });
    // Shards after a failing one may be missing.
    slots.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// Reads a shard, unless its scan is stored.
fn scan_one(
    shard: &TarShard,
    kept: &KeptScans<'_>,
    options: &WebdatasetOptions,
) -> Result<ScannedShard, DataError> {
    let progress = options.inspection.progress.as_deref();
    if let Some(scan) = kept.read(shard) {
        if let Some(progress) = progress {
            progress.add_rows(scan.samples.len() as u64);
        }
        return Ok(ScannedShard { labels: scan.labels, held: None });
    }
    let mut scan = shard.scan(options, &|| {
        if let Some(progress) = progress {
            progress.add();
        }
    })?;
    let is_kept = kept.keep(shard, &scan);
    let labels = std::mem::take(&mut scan.labels);
    Ok(ScannedShard { labels, held: (!is_kept).then_some(scan) })
}

/// Returns as many classes as the highest label implies, named by number.
fn count_classes(shards: &[TarShard], scanned: &[ScannedShard]) -> Result<Vec<String>, DataError> {
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    // The highest label, and its location.
    let mut highest: Option<(u32, &TarShard, &str)> = None;
    for (shard, ScannedShard { labels, .. }) in shards.iter().zip(scanned) {
        let Some(&label) = labels.numbers.last() else { continue };
        seen.extend(&labels.numbers);
        if highest.is_none_or(|(other, ..)| other < label) {
            highest = Some((label, shard, &labels.highest_key));
        }
    }
    let Some((label, shard, key)) = highest else { return Ok(Vec::new()) };
    numbered_classes(label, seen.len())
        .map_err(|problem| DataError::new(&shard.path, problem).at(key).hint(HINT))
}

fn find_shards(root: &Path, left_out: &mut Vec<FormatError>) -> Result<Vec<TarShard>, DataError> {
    let mut shards = Vec::new();
    if let Some(url) = CloudUrl::parse(root) {
        let remote = RemoteFolder::open(&url)?;
        for object in remote.objects() {
            shards.extend(shard(&object.name, remote.path(&object.name), Some(&remote))?);
        }
    } else {
        walk(root, "", left_out, &mut |name| -> Result<(), DataError> {
            let path = root.join(name);
            let found = shard(name, path.clone(), None)?;
            if found.is_some() {
                safe_path::check(root, &path)?;
            }
            shards.extend(found);
            Ok(())
        })?;
    }
    if shards.is_empty() {
        let problem = "there is no .tar file in it";
        return Err(DataError::content(root, problem).hint("pass the folder that contains the shards"));
    }
    shards.sort_by_key(|shard| SPLITS.iter().position(|(name, _)| *name == shard.subset));
    Ok(shards)
}

/// Makes the shard with this name; `None` if it is not named like a shard.
fn shard(
    name: &str,
    path: PathBuf,
    remote: Option<&Arc<RemoteFolder>>,
) -> Result<Option<TarShard>, DataError> {
    let lower = name.to_ascii_lowercase();
    if [".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"].iter().any(|end| lower.ends_with(end)) {
        let problem = "a compressed shard does not allow random access";
        return Err(DataError::content(path, problem).hint("decompress it to .tar; images hardly compress"));
    }
    if Path::new(&lower).extension().is_none_or(|extension| extension != "tar") {
        return Ok(None);
    }
    let mut words = name.split(['/', '-', '_', '.']);
    let subset = words.find_map(split).unwrap_or("train");
    Ok(Some(TarShard { subset, name: name.to_owned(), path, remote: remote.cloned() }))
}
