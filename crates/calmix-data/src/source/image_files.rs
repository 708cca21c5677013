//! Image files below a root: checks them and adds them to a manifest.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::listing::walk;
use super::{Check, Inspection};
use crate::decode::{DecodeError, DecodeLimits, decode, kind, size};
use crate::error::{DataError, DataProblem};
use crate::manifest::ManifestBuilder;
use crate::prepare::Prepared;

/// The image files below a root.
#[derive(Debug)]
pub(super) struct ImageFiles {
    root: PathBuf,
    /// The root without links, to compare with.
    real: PathBuf,
    limits: DecodeLimits,
    check: Check,
    added: u64,
}

impl ImageFiles {
    pub(super) fn open(root: &Path, inspection: &Inspection, images: u64) -> Result<Self, DataError> {
        let real = fs::canonicalize(root).map_err(|error| DataError::new(root, error))?;
        let check = inspection.check_for(images);
        Ok(Self { root: root.to_owned(), real, limits: inspection.limits, check, added: 0 })
    }

    /// Adds the file `name`, found in a folder. A file that is an image neither by its bytes nor by its name is skipped
    /// silently.
    pub(super) fn found(
        &mut self,
        builder: &mut ManifestBuilder,
        name: &str,
        label: Option<u32>,
    ) -> Result<(), DataError> {
        self.add(builder, name, label, false)
    }

    /// Adds the file `name`, named by a list: a file that is not an image is reported as unreadable.
    pub(super) fn listed(
        &mut self,
        builder: &mut ManifestBuilder,
        name: &str,
        label: Option<u32>,
    ) -> Result<(), DataError> {
        self.add(builder, name, label, true)
    }

    fn add(
        &mut self,
        builder: &mut ManifestBuilder,
        name: &str,
        label: Option<u32>,
        listed: bool,
    ) -> Result<(), DataError> {
        let path = self.root.join(name);
        let bytes = match self.read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                builder.unreadable(error);
                return Ok(());
            }
        };
        let kind = kind(&bytes);
        if !listed && !kind.is_image() && !is_named_like_an_image(name) {
            return Ok(());
        }
        match check_image(&bytes, &self.limits, self.check) {
            Ok(()) => {
                let part = builder.part(name, bytes.len() as u64)?;
                self.added += 1;
                builder.sample(part, 0, &bytes, label)
            }
            Err(error) => {
                let hint = error.hint();
                builder.unreadable(DataError::new(path, error).hint(hint));
                Ok(())
            }
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        let real = fs::canonicalize(path).map_err(|error| DataError::new(path, error))?;
        if !real.starts_with(&self.real) {
            let problem = DataProblem::Content("a link that leads out of the dataset's folder".into());
            return Err(DataError::new(path, problem).hint("copy what it points to into the folder"));
        }
        read(&real, &self.limits).map_err(|problem| DataError::new(path, problem))
    }

    /// Finishes the dataset; it is an error if no image could be read.
    pub(super) fn finish(self, builder: ManifestBuilder) -> Result<Prepared, DataError> {
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
    const ENDINGS: [&str; 14] = [
        "jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "bmp", "tif", "tiff", "heic", "heif", "avif",
        "jxl",
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
