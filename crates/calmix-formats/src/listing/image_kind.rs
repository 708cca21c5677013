//! Detects image files by name or by first bytes.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::decode::kind;
use crate::error::FormatError;
use crate::listing::walk;

/// Returns whether a file with this name should be an image, supported or not.
pub fn has_image_extension(name: &str) -> bool {
    const EXTENSIONS: [&str; 25] = [
        "jpg", "jpeg", "jpe", "jfif", "png", "webp", "gif", "bmp", "tif", "tiff", "heic", "heif", "avif",
        "jxl", // Cameras' raw files.
        "cr2", "cr3", "nef", "arw", "dng", "raf", "rw2", "orf", "pef", "srw", "nrw",
    ];
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// Returns whether a file without an image name is an image by its first bytes.
pub fn is_image_by_content(path: &Path) -> Result<bool, FormatError> {
    let mut start = [0; 64];
    let read = fs::metadata(path).and_then(|found| {
        // Reading a pipe could block forever.
        if found.is_file() { File::open(path)?.read(&mut start) } else { Ok(0) }
    });
    match read.map_err(|error| FormatError::new(path, error)) {
        Ok(length) => Ok(kind(&start[..length]).is_image()),
        Err(error) if error.is_storage_failure() => Err(error),
        Err(_) => Ok(false),
    }
}

/// Returns whether a file below the folder `name` is named like an image.
pub fn contains_image(root: &Path, name: &str) -> Result<bool, FormatError> {
    let mut found = false;
    let mut look = |file: &str| {
        found = found || has_image_extension(file);
        // One is enough: the error ends the walk.
        if found { Err(FormatError::content(root, String::new())) } else { Ok(()) }
    };
    let walked = walk(root, name, &mut Vec::new(), &mut look);
    if found { Ok(true) } else { walked.map(|()| false) }
}
