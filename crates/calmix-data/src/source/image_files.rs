//! Checks the image files below a root and adds them to a manifest.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use calmix_formats::decode::{
    DecodeLimits, DecodeProblem, EncodedFile, ImageExtent, decode, extent, kind, size,
};
use calmix_formats::error::FormatProblem;
use calmix_formats::labels::csv_table::LabelRow;
use calmix_formats::labels::drawn::Drawn;
use calmix_formats::listing::image_kind::has_image_extension;
use calmix_io::system::READ_PERMISSION_HINT;
use calmix_io::transient::BackOff;

use super::{Check, Inspection};
use crate::error::DataError;
use crate::manifest::{ManifestBuilder, Prepared, SampleDigest};
use crate::shrink::{decode_shrunk, stored};

/// Files per thread that are read at a time: enough that a large one does not keep the other threads waiting.
const FILES_PER_THREAD: usize = 8;
/// The maximum number of bytes of shrunk images waiting to be written, about a hundred images; reading pauses beyond it.
const MAX_PENDING_BYTES: usize = 128 << 20;

/// The image files below a root. Several threads read them; they are added in the order in which they were named.
#[derive(Debug)]
pub(super) struct ImageFiles {
    root: PathBuf,
    /// The canonical path of the root; links must not lead out of it.
    real: PathBuf,
    inspection: Inspection,
    check: Check,
    threads: usize,
    pending: Vec<NamedFile>,
    /// Reading a file, waiting for the storage, and the limit of pending bytes, which tests replace.
    read_bytes: ReadBytes,
    pause: fn(Duration),
    pending_bytes: usize,
}

/// Reads a file within the limits.
type ReadBytes = fn(&Path, &DecodeLimits) -> Result<EncodedFile, FormatProblem>;

/// A file that remains to be read.
#[derive(Debug)]
struct NamedFile {
    name: String,
    label: Option<u32>,
    /// The name of its group, if it has one.
    group: Option<String>,
    drawn: Drawn,
    weight: f64,
    origin: Origin,
}

/// The origin of a file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A folder: a file that is not an image by its bytes or name is skipped silently.
    Folder,
    /// A list: a file that is not an image is reported as unreadable.
    List,
}

/// The result of reading a file.
enum ReadFile {
    /// An image that is used unchanged, at the start of a file of `file` bytes.
    Image {
        file: u64,
        digest: SampleDigest,
    },
    /// The stored form of a shrunk image, from a file of `file` bytes.
    Shrunk {
        file: u64,
        bytes: Vec<u8>,
    },
    NoImage,
    /// Not a supported image: left out, with the reason.
    Unreadable(DataError),
    /// The storage failed, so the file may be an image: the scan ends with this error.
    Failed(DataError),
    /// Not read, because the scan is ending.
    Skipped,
}

impl ImageFiles {
    pub(super) fn open(root: &Path, inspection: &Inspection, images: u64) -> Result<Self, DataError> {
        let real = fs::canonicalize(root).map_err(|error| DataError::new(root, error))?;
        if let Some(progress) = &inspection.progress {
            progress.expect(images);
        }
        Ok(Self {
            root: root.to_owned(),
            real,
            check: inspection.check_for(images),
            inspection: inspection.clone(),
            threads: inspection.thread_count(),
            pending: Vec::new(),
            read_bytes: EncodedFile::read,
            pause: thread::sleep,
            pending_bytes: MAX_PENDING_BYTES,
        })
    }

    /// Adds the file `name`.
    pub(super) fn add(
        &mut self,
        builder: &mut ManifestBuilder,
        name: &str,
        label: Option<u32>,
        group: Option<&str>,
        origin: Origin,
    ) -> Result<(), DataError> {
        let name = name.to_owned();
        let group = group.map(str::to_owned);
        self.push(builder, NamedFile { name, label, group, drawn: Drawn::Given, weight: 1.0, origin })
    }

    /// Adds the file of a row of a list.
    pub(super) fn add_listed(
        &mut self,
        builder: &mut ManifestBuilder,
        row: &LabelRow,
        label: Option<u32>,
    ) -> Result<(), DataError> {
        let LabelRow { file, group, drawn, weight, .. } = row;
        let file = NamedFile {
            name: file.clone(),
            label,
            group: group.clone(),
            drawn: *drawn,
            weight: *weight,
            origin: Origin::List,
        };
        self.push(builder, file)
    }

    fn push(&mut self, builder: &mut ManifestBuilder, file: NamedFile) -> Result<(), DataError> {
        self.pending.push(file);
        if self.pending.len() < FILES_PER_THREAD * self.threads { Ok(()) } else { self.flush(builder) }
    }

    /// Reads and adds all pending files. Call it before starting a subset or recording anything else.
    ///
    /// # Errors
    /// If the storage keeps failing for a file, or the table cannot be written.
    pub(super) fn flush(&mut self, builder: &mut ManifestBuilder) -> Result<(), DataError> {
        let mut files = std::mem::take(&mut self.pending);
        while !files.is_empty() {
            files = self.read_some(builder, files)?;
        }
        Ok(())
    }

    /// Reads files until shrunk images take up too much memory, and adds them; returns the remaining files.
    fn read_some(
        &mut self,
        builder: &mut ManifestBuilder,
        mut files: Vec<NamedFile>,
    ) -> Result<Vec<NamedFile>, DataError> {
        let slots: Vec<OnceLock<ReadFile>> = files.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let pending_bytes = AtomicUsize::new(0);
        let is_over = AtomicBool::new(false);
        let work = || {
            while pending_bytes.load(Ordering::Relaxed) < self.pending_bytes
                && let n = next.fetch_add(1, Ordering::Relaxed)
                && let Some((file, slot)) = files.get(n).zip(slots.get(n))
            {
                let read = self.read_file(file, &is_over);
                if let ReadFile::Shrunk { bytes, .. } = &read {
                    pending_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
                }
                let _ = slot.set(read);
                if let Some(progress) = &self.inspection.progress {
                    progress.add();
                }
            }
        };
        thread::scope(|scope| {
            let others = self.threads.min(files.len()).saturating_sub(1);
            for _ in 0..others {
                scope.spawn(work);
            }
            work();
        });
        // Files are taken in order, so the ones that were read come first.
        let left = files.split_off(next.into_inner().min(files.len()));
        for (NamedFile { name, label, group, drawn, weight, .. }, read) in files.into_iter().zip(slots) {
            match read.into_inner() {
                Some(ReadFile::Image { file, digest }) => {
                    let part = builder.part(&name, file)?;
                    builder.digested_sample(part, 0, &digest, label)?;
                }
                Some(ReadFile::Shrunk { file, bytes }) => {
                    builder.shrunk_sample(&name, file, &bytes, self.inspection.shrink, label)?;
                }
                Some(ReadFile::Unreadable(error)) => {
                    builder.unreadable(error);
                    continue;
                }
                Some(ReadFile::Failed(error)) => return Err(error),
                Some(ReadFile::NoImage | ReadFile::Skipped) | None => continue,
            }
            if let Some(group) = group {
                builder.set_group(&group)?;
            }
            builder.set_drawn(drawn)?;
            builder.set_weight(weight)?;
        }
        Ok(left)
    }

    fn read_file(&self, NamedFile { name, origin, .. }: &NamedFile, is_over: &AtomicBool) -> ReadFile {
        let path = self.root.join(name);
        let bytes = match self.read_patiently(&path, is_over) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return ReadFile::Skipped,
            Err(error) if error.is_storage_failure() => {
                is_over.store(true, Ordering::Relaxed);
                let hint = if error.is_transient() {
                    "try again when the storage is available"
                } else {
                    READ_PERMISSION_HINT
                };
                return ReadFile::Failed(error.hint(hint));
            }
            Err(error) => return ReadFile::Unreadable(error),
        };
        if *origin == Origin::Folder && !kind(&bytes).is_image() && !has_image_extension(name) {
            return ReadFile::NoImage;
        }
        self.checked(&bytes).unwrap_or_else(|error| ReadFile::Unreadable(error.in_file(path)))
    }

    /// Checks an image, and shrinks it if it is too large.
    fn checked(&self, bytes: &[u8]) -> Result<ReadFile, DataError> {
        let Inspection { limits, shrink, .. } = &self.inspection;
        let ImageExtent { width, height, end } = extent(bytes, limits)?;
        let file = bytes.len() as u64;
        if *shrink > 0 && width.min(height) > *shrink {
            let image = decode_shrunk(bytes, limits, *shrink)?;
            return Ok(ReadFile::Shrunk { file, bytes: stored(&image, bytes) });
        }
        // Bytes after the image are dropped from the sample: they would be read again at every visit.
        let image = bytes.get(..end).unwrap_or(bytes);
        check_image(image, limits, self.check)?;
        Ok(ReadFile::Image { file, digest: SampleDigest::new(image) })
    }

    /// Reads a file, waiting for temporarily unavailable storage as a loader does: an image that is left out now is missing
    /// from every run on this table. Returns `None` if the scan is over.
    fn read_patiently(&self, path: &Path, is_over: &AtomicBool) -> Result<Option<EncodedFile>, DataError> {
        let outage = self.inspection.progress.as_ref().map(|progress| progress.outage());
        let mut back_off = BackOff::default();
        loop {
            if is_over.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let error = match self.read(path) {
                Err(error) if error.is_transient() => error,
                Ok(bytes) => {
                    outage.inspect(|outage| outage.recovered());
                    return Ok(Some(bytes));
                }
                Err(error) => return Err(error),
            };
            let Some(wait) = back_off.next() else { return Err(error) };
            outage.inspect(|outage| outage.failed(&error, &back_off));
            (self.pause)(wait);
        }
    }

    fn read(&self, path: &Path) -> Result<EncodedFile, DataError> {
        let real = fs::canonicalize(path).map_err(|error| DataError::new(path, error))?;
        if !real.starts_with(&self.real) {
            let problem = "a link that leads out of the dataset folder";
            return Err(DataError::content(path, problem).hint("replace the link with a copy of its target"));
        }
        (self.read_bytes)(&real, &self.inspection.limits).map_err(|problem| DataError::new(path, problem))
    }

    /// Finishes the dataset; fails if no image could be read.
    pub(super) fn finish(mut self, mut builder: ManifestBuilder) -> Result<Prepared, DataError> {
        self.flush(&mut builder)?;
        builder.finish_unless_empty(
            &self.root,
            "none of its images could be read",
            "put JPEG, PNG or WebP files into it",
        )
    }
}

/// Checks that `bytes` are an image, as thoroughly as `check` demands.
pub(super) fn check_image(bytes: &[u8], limits: &DecodeLimits, check: Check) -> Result<(), DecodeProblem> {
    match check {
        Check::Header => size(bytes, limits).map(|_| ()),
        Check::Full => decode(bytes, limits).map(|_| ()),
    }
}

#[cfg(test)]
mod tests;
