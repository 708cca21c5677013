//! Image files below a root: finds them in a fixed order, checks them and adds them to a manifest.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{Check, Inspection};
use crate::decode::{DecodeError, DecodeLimits, decode, kind, size};
use crate::error::{DataError, DataProblem};
use crate::manifest::ManifestBuilder;
use crate::prepare::Prepared;
use crate::safe_path;

/// The deepest nesting of folders.
const DEEPEST: usize = 32;

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

/// What a folder holds.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Names of its files, in ascending order of their bytes.
    pub(super) files: Vec<String>,
    /// Names of its folders, likewise.
    pub(super) folders: Vec<String>,
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
        let real = fs::canonicalize(&path).map_err(|error| DataError::new(&path, error))?;
        if !real.starts_with(&self.real) {
            let problem = DataProblem::Content("a link that leads out of the dataset's folder".into());
            return Err(DataError::new(path, problem).hint("copy what it points to into the folder"));
        }
        let bytes = match read(&real, &self.limits) {
            Ok(bytes) => bytes,
            Err(error) => {
                builder.unreadable(DataError::new(path, error));
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

fn read(path: &Path, limits: &DecodeLimits) -> Result<Vec<u8>, DataProblem> {
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

pub(super) fn is_named_like_an_image(name: &str) -> bool {
    const ENDINGS: [&str; 14] = [
        "jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "bmp", "tif", "tiff", "heic", "heif", "avif",
        "jxl",
    ];
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// The contents of the folder `name` below `root`, without hidden files and files that operating systems create;
/// `name` is empty for the root.
pub(super) fn contents(root: &Path, name: &str) -> Result<Contents, DataError> {
    let path = root.join(name);
    let failed = |error: io::Error| DataError::new(&path, error);
    let mut contents = Contents::default();
    for entry in fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else {
            let problem = DataProblem::Content("its name is not UTF-8".into());
            return Err(DataError::new(entry.path(), problem).hint("rename it"));
        };
        if is_system_file(&name) {
            continue;
        }
        if let Some(why) = safe_path::why_unsafe(&name) {
            let problem = DataProblem::Content(format!("its name {why}"));
            return Err(DataError::new(entry.path(), problem).hint("rename it"));
        }
        let is_link = entry.file_type().map_err(failed)?.is_symlink();
        let is_folder = entry.path().is_dir();
        if is_link && is_folder {
            let problem = DataProblem::Content("a link to a folder, which is not followed".into());
            return Err(DataError::new(entry.path(), problem)
                .hint("copy or mount the folder in its place, or link its files one by one"));
        }
        if is_folder { contents.folders.push(name) } else { contents.files.push(name) }
    }
    contents.files.sort_unstable();
    contents.folders.sort_unstable();
    Ok(contents)
}

/// Visits every file below the folder `name`: first its files, then its folders, each in ascending order of
/// their bytes, whatever order the system lists them in.
pub(super) fn walk(
    root: &Path,
    name: &str,
    visit: &mut dyn FnMut(&str) -> Result<(), DataError>,
) -> Result<(), DataError> {
    walk_from(root, name, 0, visit)
}

fn walk_from(
    root: &Path,
    name: &str,
    depth: usize,
    visit: &mut dyn FnMut(&str) -> Result<(), DataError>,
) -> Result<(), DataError> {
    if depth > DEEPEST {
        let problem = DataProblem::Limit(format!("more than {DEEPEST} folders deep"));
        return Err(DataError::new(root.join(name), problem));
    }
    let below = |child: &str| if name.is_empty() { child.to_owned() } else { format!("{name}/{child}") };
    let contents = contents(root, name)?;
    contents.files.iter().try_for_each(|file| visit(&below(file)))?;
    contents.folders.iter().try_for_each(|folder| walk_from(root, &below(folder), depth + 1, visit))
}

fn is_system_file(name: &str) -> bool {
    name.starts_with('.')
        || ["Thumbs.db", "desktop.ini", "__MACOSX"].iter().any(|known| name.eq_ignore_ascii_case(known))
}
