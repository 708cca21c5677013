//! Lists the folders of a dataset in a fixed order.
//!
//! A bad name or link does not end a scan: what cannot be part of a dataset is left out, with the reason.

pub mod image_kind;

use std::fs::{self, DirEntry};
use std::path::Path;
use std::{io, thread};

use calmix_io::safe_path;
use calmix_io::system::READ_PERMISSION_HINT;
use calmix_io::transient::BackOff;

use crate::error::FormatError;

/// The maximum nesting of folders.
const MAX_DEPTH: usize = 32;

/// The files that identify a prepared dataset or a run.
const OURS: [&[&str]; 2] = [&["manifest.json", "samples.bin", "parts.bin"], &["run.json", "calmix.lock"]];

/// The contents of a folder.
#[derive(Debug, Default)]
pub struct Contents {
    /// The names of its files, in byte order.
    pub files: Vec<String>,
    /// The names of its folders, in byte order.
    pub folders: Vec<String>,
    /// Entries that are not part of the dataset, with the reasons.
    pub left_out: Vec<FormatError>,
}

/// Lists the folder `name` below `root`, without hidden files and files that operating systems create; `name` is empty for
/// the root itself. Waits for temporarily unavailable storage.
///
/// # Errors
/// If the folder cannot be listed: without the images of a class, it would be a different dataset.
pub fn contents(root: &Path, name: &str) -> Result<Contents, FormatError> {
    let mut back_off = BackOff::default();
    loop {
        let error = match list(root, name) {
            Err(error) if error.is_transient() => error,
            listed => return listed,
        };
        thread::sleep(back_off.next().ok_or(error)?);
    }
}

fn list(root: &Path, name: &str) -> Result<Contents, FormatError> {
    let path = root.join(name);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => FormatError::new(&path, error).hint(READ_PERMISSION_HINT),
        _ => FormatError::new(&path, error),
    };
    let mut contents = Contents::default();
    for entry in fs::read_dir(&path).map_err(failed)? {
        contents.add_entry(&entry.map_err(failed)?)?;
    }
    contents.files.sort_unstable();
    contents.folders.sort_unstable();
    contents.left_out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(contents)
}

impl Contents {
    fn add_entry(&mut self, entry: &DirEntry) -> Result<(), FormatError> {
        let path = entry.path();
        let mut leave_out = |problem: String, hint: &str| {
            self.left_out.push(FormatError::content(&path, problem).hint(hint));
            Ok(())
        };
        let Ok(name) = entry.file_name().into_string() else {
            return leave_out("its name is not UTF-8".into(), "rename it");
        };
        if is_system_file(&name) {
            return Ok(());
        }
        if let Some(why) = safe_path::why_unsafe_here(&name) {
            return leave_out(format!("its name {why}"), "rename it");
        }
        let failed = |error: io::Error| FormatError::new(&path, error);
        let is_link = entry.file_type().map_err(failed)?.is_symlink();
        // The target, if it is a link.
        let found = match fs::metadata(&path).map_err(failed) {
            Ok(found) => Some(found),
            Err(error) if error.is_transient() => return Err(error),
            Err(_) => None,
        };
        let is_folder = found.as_ref().is_some_and(fs::Metadata::is_dir);
        if is_link && is_folder {
            return leave_out(
                "a link to a folder; calmix does not follow it".into(),
                "copy or mount the folder in its place, or link its files individually",
            );
        }
        if is_link && found.is_none() {
            return leave_out("a broken link".into(), "remove it, or restore its target");
        }
        if is_folder && is_ours(&path) {
            let hint = "move it out of the dataset folder";
            return leave_out("calmix wrote this folder, so it is not part of the dataset".into(), hint);
        }
        let names = if is_folder { &mut self.folders } else { &mut self.files };
        names.push(name);
        Ok(())
    }
}

/// Visits every file below the folder `name`: first its files, then its folders, each in byte order, independent of the
/// listing order of the system. Entries that are not part of the dataset are added to `left_out`.
///
/// # Errors
/// If a folder cannot be listed, and the errors of `visit`.
pub fn walk<E: From<FormatError>>(
    root: &Path,
    name: &str,
    left_out: &mut Vec<FormatError>,
    visit: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    walk_from(root, name, 0, left_out, visit)
}

fn walk_from<E: From<FormatError>>(
    root: &Path,
    name: &str,
    depth: usize,
    left_out: &mut Vec<FormatError>,
    visit: &mut dyn FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    if depth > MAX_DEPTH {
        let problem = format!("nested more than {MAX_DEPTH} folders deep");
        left_out.push(FormatError::limit(root.join(name), problem).hint("move it closer to the top folder"));
        return Ok(());
    }
    let mut contents = contents(root, name)?;
    left_out.append(&mut contents.left_out);
    contents.files.iter().try_for_each(|file| visit(&below(name, file)))?;
    contents
        .folders
        .iter()
        .try_for_each(|folder| walk_from(root, &below(name, folder), depth + 1, left_out, visit))
}

/// Joins `child` to `folder`, relative to the root.
pub fn below(folder: &str, child: &str) -> String {
    if folder.is_empty() { child.to_owned() } else { format!("{folder}/{child}") }
}

/// Returns whether calmix wrote the folder: a prepared dataset, a run, or a folder that contains only these.
fn is_ours(path: &Path) -> bool {
    if has_marks(path) {
        return true;
    }
    let Ok(entries) = fs::read_dir(path) else { return false };
    let mut seen = false;
    for entry in entries.flatten() {
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && !has_marks(&entry.path()) {
            return false;
        }
        seen |= !is_hidden;
    }
    seen
}

fn has_marks(path: &Path) -> bool {
    OURS.iter().any(|marks| marks.iter().all(|mark| path.join(mark).is_file()))
}

/// Returns whether a file or folder with this name is hidden, or created by an operating system.
pub fn is_system_file(name: &str) -> bool {
    name.starts_with('.')
        || ["Thumbs.db", "desktop.ini", "__MACOSX", "lost+found"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
}
