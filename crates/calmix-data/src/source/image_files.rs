//! Image files below a root: checks them and adds them to a manifest.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::listing::walk;
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
}

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
    Image { length: u64, bytes: Vec<u8>, is_shrunk: bool },
    NoImage,
    Unreadable(DataError),
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
    pub(super) fn flush(&mut self, builder: &mut ManifestBuilder) -> Result<(), DataError> {
        let files = std::mem::take(&mut self.pending);
        let slots: Vec<OnceLock<ReadFile>> = files.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((file, slot)) = {
                let n = next.fetch_add(1, Ordering::Relaxed);
                files.get(n).zip(slots.get(n))
            } {
                let _ = slot.set(self.read_file(file));
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
                Some(ReadFile::NoImage) | None => {}
            }
        }
        Ok(())
    }

    fn read_file(&self, NamedFile { name, listed, .. }: &NamedFile) -> ReadFile {
        let path = self.root.join(name);
        let bytes = match self.read(&path) {
            Ok(bytes) => bytes,
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

    fn read(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        let real = fs::canonicalize(path).map_err(|error| DataError::new(path, error))?;
        if !real.starts_with(&self.real) {
            let problem = DataProblem::Content("a link that leads out of the dataset's folder".into());
            return Err(DataError::new(path, problem).hint("copy what it points to into the folder"));
        }
        read(&real, &self.inspection.limits).map_err(|problem| DataError::new(path, problem))
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
pub(super) fn is_image_by_content(path: &Path) -> bool {
    let mut start = [0; 64];
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    let read = is_file.then(|| File::open(path).and_then(|mut file| file.read(&mut start)));
    read.is_some_and(|read| read.is_ok_and(|length| kind(&start[..length]).is_image()))
}

/// Whether a file below the folder `name` is named like an image.
pub(super) fn holds_image(root: &Path, name: &str) -> bool {
    let mut found = false;
    let mut look = |file: &str| {
        found = found || is_named_like_an_image(file);
        // The first one is enough: an error ends the walk.
        if found { Err(DataError::new(root, DataProblem::Content(String::new()))) } else { Ok(()) }
    };
    let _ = walk(root, name, &mut Vec::new(), &mut look);
    found
}
