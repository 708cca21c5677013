//! Stores scans of shards on disk, so that a killed preparation can continue and memory holds few scans.
//!
//! Each shard has a safetensors file with a value per sample: `offsets` (u64), `lengths`, `checksums` and `labels` (u32),
//! and `contents` (u8, samples × 32), their BLAKE3. It is only used for a shard with the same name, length and modification
//! time, and only if it belongs to this user.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use calmix_io::safe_open;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, serialize};
use serde_json::json;
use tempfile::NamedTempFile;

use super::shard_scan::{FoundLabels, ScannedSample, ShardScan, TarShard, WebdatasetOptions};
use crate::manifest::{NO_LABEL, SampleDigest};
use crate::source::Check;

/// The maximum size of a file, in bytes: a shard of a hundred million images.
const MAX_SCAN_BYTES: u64 = 6 << 30;
/// The format of these files; files in another format are ignored.
const FORMAT: u32 = 1;
/// Keys of the metadata.
const STAMP: &str = "stamp";
const HIGHEST: &str = "highest";
const HASH: &str = "blake3";

/// The folder of a source's scans; `None` if none are stored.
#[derive(Debug)]
pub(super) struct KeptScans<'a> {
    folder: Option<&'a Path>,
    /// The options that a scan depends on, as JSON.
    options: String,
}

impl<'a> KeptScans<'a> {
    /// Uses `folder`, which is created if necessary. Without a folder, or if it cannot be used, no scans are stored.
    pub(super) fn new(folder: Option<&'a Path>, options: &WebdatasetOptions) -> Self {
        let own = |folder: &&Path| {
            safe_open::create_folder_if_missing(*folder).is_ok()
                && safe_open::check_owned_folder(folder).is_ok()
        };
        let check = options.inspection.check.unwrap_or(Check::Header);
        let limits = &options.inspection.limits;
        let options = json!({
            "format": FORMAT,
            "check": format!("{check:?}"),
            "limits": format!("{limits:?}"),
            "classes": options.classes,
            "unlabelled": options.unlabelled,
        });
        Self { folder: folder.filter(own), options: options.to_string() }
    }

    /// Stores a scan, and returns whether that was possible. A scan with unreadable images is not stored, because their
    /// errors are not.
    pub(super) fn keep(&self, shard: &TarShard, scan: &ShardScan) -> bool {
        let Some(path) = self.path(shard).filter(|_| scan.unreadable.is_empty()) else { return false };
        let bytes = self.stamp(shard, scan.length).and_then(|stamp| to_bytes(scan, stamp));
        bytes.is_some_and(|bytes| write(&path, &bytes).is_ok())
    }

    /// Reads the stored scan of a shard, if the shard is unchanged.
    pub(super) fn read(&self, shard: &TarShard) -> Option<ShardScan> {
        let bytes = safe_open::read_owned(&*self.path(shard)?, MAX_SCAN_BYTES).ok()?;
        let (length, _) = shard.version()?;
        let scan = from_bytes(&bytes, &self.stamp(shard, length)?)?;
        Some(ShardScan { length, ..scan })
    }

    fn path(&self, shard: &TarShard) -> Option<PathBuf> {
        let name: String = blake3::hash(shard.name.as_bytes()).to_hex().chars().take(32).collect();
        Some(self.folder?.join(format!("{name}.safetensors")))
    }

    /// Identifies the shard and the options of a scan; `None` if the shard no longer has this length.
    fn stamp(&self, shard: &TarShard, length: u64) -> Option<String> {
        let (_, changed) = shard.version().filter(|(found, _)| *found == length)?;
        let stamp = json!({
            "options": self.options,
            "name": shard.name,
            "subset": shard.subset,
            "length": length,
            "changed": changed,
        });
        Some(stamp.to_string())
    }
}

/// Writes a file that appears only when complete. It is not synchronised, which would take longer than reading the shard
/// again: after a power failure, a damaged file fails its hash.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

fn to_bytes(scan: &ShardScan, stamp: String) -> Option<Vec<u8>> {
    let mut offsets = Vec::new();
    let mut lengths = Vec::new();
    let mut checksums = Vec::new();
    let mut labels = Vec::new();
    let mut contents = Vec::new();
    for ScannedSample { offset, digest, label } in &scan.samples {
        offsets.extend(offset.to_le_bytes());
        lengths.extend(u32::try_from(digest.length).ok()?.to_le_bytes());
        checksums.extend(digest.checksum.to_le_bytes());
        labels.extend(label.unwrap_or(NO_LABEL).to_le_bytes());
        contents.extend(digest.content.as_bytes());
    }
    let count = scan.samples.len();
    let hash = hash_of([&offsets, &lengths, &checksums, &labels, &contents]);
    let tensors = [
        ("offsets", TensorView::new(Dtype::U64, vec![count], &offsets).ok()?),
        ("lengths", TensorView::new(Dtype::U32, vec![count], &lengths).ok()?),
        ("checksums", TensorView::new(Dtype::U32, vec![count], &checksums).ok()?),
        ("labels", TensorView::new(Dtype::U32, vec![count], &labels).ok()?),
        ("contents", TensorView::new(Dtype::U8, vec![count, blake3::OUT_LEN], &contents).ok()?),
    ];
    let metadata = HashMap::from([
        (STAMP.to_owned(), stamp),
        (HIGHEST.to_owned(), scan.labels.highest_key.clone()),
        (HASH.to_owned(), hash),
    ]);
    serialize(tensors, Some(metadata)).ok()
}

fn from_bytes(bytes: &[u8], stamp: &str) -> Option<ShardScan> {
    let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
    let metadata = header.metadata().as_ref()?;
    if metadata.get(STAMP)? != stamp {
        return None;
    }
    let tensors = SafeTensors::deserialize(bytes).ok()?;
    let data = |name: &str, dtype: Dtype| {
        tensors.tensor(name).ok().filter(|tensor| tensor.dtype() == dtype).map(|tensor| tensor.data())
    };
    let offsets = data("offsets", Dtype::U64)?;
    let lengths = data("lengths", Dtype::U32)?;
    let checksums = data("checksums", Dtype::U32)?;
    let labels = data("labels", Dtype::U32)?;
    let contents = data("contents", Dtype::U8)?;
    if *metadata.get(HASH)? != hash_of([offsets, lengths, checksums, labels, contents]) {
        return None;
    }
    let numbers = |bytes: &'_ [u8]| -> Vec<u32> {
        bytes.as_chunks().0.iter().map(|&number| u32::from_le_bytes(number)).collect()
    };
    let lengths = numbers(lengths);
    let checksums = numbers(checksums);
    let labels = numbers(labels);
    let mut scan = ShardScan::default();
    for (n, &offset) in offsets.as_chunks().0.iter().enumerate() {
        let content: [u8; blake3::OUT_LEN] = *contents.as_chunks().0.get(n)?;
        let digest = SampleDigest {
            length: *lengths.get(n)? as usize,
            checksum: *checksums.get(n)?,
            content: blake3::Hash::from_bytes(content),
        };
        let label = Some(*labels.get(n)?).filter(|&label| label != NO_LABEL);
        scan.samples.push(ScannedSample { offset: u64::from_le_bytes(offset), digest, label });
    }
    let numbers = labels.into_iter().filter(|&label| label != NO_LABEL).collect();
    scan.labels = FoundLabels { numbers, highest_key: metadata.get(HIGHEST)?.clone() };
    Some(scan)
}

fn hash_of(parts: [&[u8]; 5]) -> String {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hash.finalize().to_hex().to_string()
}
