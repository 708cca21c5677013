//! A file that appears as a whole or not at all, among processes that may write the same one.
//!
//! It is written under a hidden name beside its own, synchronised and renamed. A process that is killed before that leaves the
//! hidden file behind; [`sweep`] removes those of a folder. The folder of a run, which has a lock, has a writer of its own.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::error::DataError;

/// What hidden names begin with.
const SCRATCH: &str = ".calmix-";

/// How old a hidden file is that nobody writes any more, where others may write: writing one takes seconds.
pub const ABANDONED: Duration = Duration::from_hours(1);

/// Writes a file. A reader finds the old content or all of `bytes`; a link in its place is replaced, not followed.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    write_once(path, bytes).map_err(|error| DataError::new(path, error))
}

fn write_once(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new();
    // `tempfile` creates private files; this one follows the user's umask.
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = file.prefix(SCRATCH).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Removes what processes that were killed left in a folder, as far as it can: hidden files of at least some age.
pub fn sweep(folder: &Path, least_age: Duration) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(SCRATCH)) {
        let modified = entry.metadata().and_then(|found| found.modified());
        let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if age.is_some_and(|age| age >= least_age) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for content in ["first", "second"] {
            write(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(names(folder.path()), ["a"]);
        let error = write(&folder.path().join("missing/a"), b"x").unwrap_err().to_string();
        assert!(error.contains("missing/a"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_it_as_any_other_file_and_a_link_is_not_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [other, path] = ["other", "a"].map(|name| folder.path().join(name));
        fs::write(&other, "kept").unwrap();
        symlink(&other, &path).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        let mode = |path| fs::symlink_metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&other));
    }

    #[test]
    fn only_what_was_abandoned_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - Duration::from_hours(2);
        for (name, modified) in [(".calmix-old", Some(old)), (".calmix-new", None), ("a.features", Some(old))]
        {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            modified.map_or(Ok(()), |modified| file.set_modified(modified)).unwrap();
        }
        sweep(folder.path(), ABANDONED);
        assert_eq!(names(folder.path()), [".calmix-new", "a.features"]);
        sweep(folder.path(), Duration::ZERO);
        assert_eq!(names(folder.path()), ["a.features"]);
    }
}
