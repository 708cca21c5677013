//! Image files below a root: checks them and adds them to a manifest.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use calmix_core::transient::BackOff;

use super::listing::{PERMIT, walk};
use super::{Check, Inspection};
use crate::decode::{DecodeError, DecodeLimits, decode, kind, size};
use crate::error::{DataError, DataProblem};
use crate::manifest::ManifestBuilder;
use crate::prepare::Prepared;
use crate::shrink::{decode_shrunk, stored};

/// Files that are read at a time, for each thread: enough that a large one does not keep the others waiting, and few enough
/// to hold in memory.
const AT_ONCE: usize = 8;

/// The image files below a root. They are read by several threads and added in the order in which they were named.
#[derive(Debug)]
pub(super) struct ImageFiles {
    root: PathBuf,
    /// The root without links, to compare with.
    real: PathBuf,
    inspection: Inspection,
    check: Check,
    added: u64,
    threads: usize,
    pending: Vec<NamedFile>,
    /// How bytes are read and how one waits for them: tests have other ways.
    read_bytes: ReadBytes,
    pause: fn(Duration),
}

/// Reads a file of at most so many bytes.
type ReadBytes = fn(&Path, &DecodeLimits) -> Result<Vec<u8>, DataProblem>;

/// A file that is still to be read.
#[derive(Debug)]
struct NamedFile {
    name: String,
    label: Option<u32>,
    /// Named by a list, which makes a file that is no image an unreadable one.
    listed: bool,
}

/// What became of a file.
enum ReadFile {
    Image {
        length: u64,
        bytes: Vec<u8>,
        is_shrunk: bool,
    },
    NoImage,
    /// Not an image that calmix reads: left out, with the reason.
    Unreadable(DataError),
    /// The storage did not let it be read, so nobody knows what it is: the scan ends.
    Failed(DataError),
    /// Not read, because the scan ends.
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
            added: 0,
            threads: match inspection.threads {
                0 => thread::available_parallelism().map_or(1, usize::from),
                threads => threads,
            },
            pending: Vec::new(),
            read_bytes: read,
            pause: thread::sleep,
        })
    }

    /// Adds the file `name`, found in a folder. A file that is an image neither by its bytes nor by its name is skipped
    /// silently.
    pub(super) fn found(
        &mut self,
        builder: &mut ManifestBuilder,
        name: &str,
        label: Option<u32>,
    ) -> Result<(), DataError> {
        self.add(builder, NamedFile { name: name.to_owned(), label, listed: false })
    }

    /// Adds the file `name`, named by a list: a file that is not an image is reported as unreadable.
    pub(super) fn listed(
        &mut self,
        builder: &mut ManifestBuilder,
        name: &str,
        label: Option<u32>,
    ) -> Result<(), DataError> {
        self.add(builder, NamedFile { name: name.to_owned(), label, listed: true })
    }

    fn add(&mut self, builder: &mut ManifestBuilder, file: NamedFile) -> Result<(), DataError> {
        self.pending.push(file);
        if self.pending.len() < AT_ONCE * self.threads { Ok(()) } else { self.flush(builder) }
    }

    /// Adds what was named until now: before a subset begins, or anything else is noted.
    ///
    /// # Errors
    /// If the storage does not let a file be read, after a while, or the table cannot be written.
    pub(super) fn flush(&mut self, builder: &mut ManifestBuilder) -> Result<(), DataError> {
        let files = std::mem::take(&mut self.pending);
        let slots: Vec<OnceLock<ReadFile>> = files.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let is_over = AtomicBool::new(false);
        let work = || {
            while let Some((file, slot)) = {
                let n = next.fetch_add(1, Ordering::Relaxed);
                files.get(n).zip(slots.get(n))
            } {
                let _ = slot.set(self.read_file(file, &is_over));
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
        for (NamedFile { name, label, .. }, read) in files.into_iter().zip(slots) {
            match read.into_inner() {
                Some(ReadFile::Image { length, bytes, is_shrunk }) => {
                    self.added += 1;
                    if is_shrunk {
                        builder.shrunk_sample(&name, length, &bytes, self.inspection.shrink, label)?;
                    } else {
                        let part = builder.part(&name, length)?;
                        builder.sample(part, 0, &bytes, label)?;
                    }
                }
                Some(ReadFile::Unreadable(error)) => builder.unreadable(error),
                Some(ReadFile::Failed(error)) => return Err(error),
                Some(ReadFile::NoImage | ReadFile::Skipped) | None => {}
            }
        }
        Ok(())
    }

    fn read_file(&self, NamedFile { name, listed, .. }: &NamedFile, is_over: &AtomicBool) -> ReadFile {
        let path = self.root.join(name);
        let bytes = match self.read_patiently(&path, is_over) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return ReadFile::Skipped,
            Err(error) if error.is_of_storage() => {
                is_over.store(true, Ordering::Relaxed);
                let hint =
                    if error.is_transient() { "prepare again when the storage answers" } else { PERMIT };
                return ReadFile::Failed(error.hint(hint));
            }
            Err(error) => return ReadFile::Unreadable(error),
        };
        if !listed && !kind(&bytes).is_image() && !is_named_like_an_image(name) {
            return ReadFile::NoImage;
        }
        let length = bytes.len() as u64;
        match self.shrunk(&bytes) {
            Ok(Some(shrunk)) => ReadFile::Image { length, bytes: shrunk, is_shrunk: true },
            Ok(None) => ReadFile::Image { length, bytes, is_shrunk: false },
            Err(error) => {
                let hint = error.hint();
                ReadFile::Unreadable(DataError::new(path, error).hint(hint))
            }
        }
    }

    /// Checks a picture; a large one comes back shrunk, as it is stored.
    fn shrunk(&self, bytes: &[u8]) -> Result<Option<Vec<u8>>, DecodeError> {
        let Inspection { limits, shrink, .. } = &self.inspection;
        let (width, height) = size(bytes, limits)?;
        if *shrink > 0 && width.min(height) > *shrink {
            let picture = decode_shrunk(bytes, limits, *shrink)?;
            return Ok(Some(stored(&picture, bytes)));
        }
        check_image(bytes, limits, self.check).map(|()| None)
    }

    /// Reads a file, and waits for storage that is away for a while, as a loader does: an image that is left out now is missing
    /// in every run on this table. None if the scan is over.
    fn read_patiently(&self, path: &Path, is_over: &AtomicBool) -> Result<Option<Vec<u8>>, DataError> {
        let outage = self.inspection.progress.as_ref().map(|progress| progress.outage());
        let mut back_off = BackOff::default();
        loop {
            if is_over.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let error = match self.read(path) {
                Err(error) if error.is_transient() => error,
                Ok(bytes) => {
                    outage.inspect(|outage| outage.over());
                    return Ok(Some(bytes));
                }
                Err(error) => return Err(error),
            };
            let Some(wait) = back_off.next() else { return Err(error) };
            outage.inspect(|outage| outage.failed(&error, &back_off));
            (self.pause)(wait);
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        let real = fs::canonicalize(path).map_err(|error| DataError::new(path, error))?;
        if !real.starts_with(&self.real) {
            let problem = DataProblem::Content("a link that leads out of the dataset's folder".into());
            return Err(DataError::new(path, problem).hint("copy what it points to into the folder"));
        }
        (self.read_bytes)(&real, &self.inspection.limits).map_err(|problem| DataError::new(path, problem))
    }

    /// Finishes the dataset; it is an error if no image could be read.
    pub(super) fn finish(mut self, mut builder: ManifestBuilder) -> Result<Prepared, DataError> {
        self.flush(&mut builder)?;
        if self.added > 0 {
            return builder.finish();
        }
        let problem = DataProblem::Content("no image in it could be read".into());
        Err(DataError::new(self.root, problem).hint(match builder.first_unreadable() {
            Some(first) => format!("the first is {first}"),
            None => "put JPEG, PNG or WebP files into it".to_owned(),
        }))
    }
}

/// Whether `bytes` are a picture, as far as `check` looks.
pub(super) fn check_image(bytes: &[u8], limits: &DecodeLimits, check: Check) -> Result<(), DecodeError> {
    match check {
        Check::Header => size(bytes, limits).map(|_| ()),
        Check::Full => decode(bytes, limits).map(|_| ()),
    }
}

pub(crate) fn read(path: &Path, limits: &DecodeLimits) -> Result<Vec<u8>, DataProblem> {
    // Reading a pipe could block forever.
    if !fs::metadata(path)?.is_file() {
        return Err(DataProblem::Content("not a plain file".into()));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limits.bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limits.bytes {
        return Err(DecodeError::Bytes(bytes.len() as u64).into());
    }
    Ok(bytes)
}

pub(crate) fn is_named_like_an_image(name: &str) -> bool {
    const ENDINGS: [&str; 25] = [
        "jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "bmp", "tif", "tiff", "heic", "heif", "avif",
        "jxl", // Cameras' raw files.
        "cr2", "cr3", "nef", "arw", "dng", "raf", "rw2", "orf", "pef", "srw", "nrw",
    ];
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// Whether a file of another name is an image by its first bytes.
///
/// # Errors
/// If the storage does not let it be read.
pub(super) fn is_image_by_content(path: &Path) -> Result<bool, DataError> {
    let mut start = [0; 64];
    let read = fs::metadata(path).and_then(|found| {
        // Reading a pipe could block forever.
        if found.is_file() { File::open(path)?.read(&mut start) } else { Ok(0) }
    });
    match read.map_err(|error| DataError::new(path, error)) {
        Ok(length) => Ok(kind(&start[..length]).is_image()),
        Err(error) if error.is_of_storage() => Err(error),
        Err(_) => Ok(false),
    }
}

/// Whether a file below the folder `name` is named like an image.
///
/// # Errors
/// If a folder cannot be listed.
pub(super) fn holds_image(root: &Path, name: &str) -> Result<bool, DataError> {
    let mut found = false;
    let mut look = |file: &str| {
        found = found || is_named_like_an_image(file);
        // The first one is enough: an error ends the walk.
        if found { Err(DataError::new(root, DataProblem::Content(String::new()))) } else { Ok(()) }
    };
    let walked = walk(root, name, &mut Vec::new(), &mut look);
    if found { Ok(true) } else { walked.map(|()| false) }
}

#[cfg(test)]
mod tests;
