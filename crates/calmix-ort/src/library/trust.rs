//! The check whether another user could have written a library.

use std::fs;
use std::path::Path;

use calmix_io::system::untrusted_because;

use super::problem::{LibraryProblem, unusable};

/// Refuses a library that another user could have written or replaced. The path must contain no links.
pub(super) fn check(path: &Path) -> Result<(), LibraryProblem> {
    let untrusted =
        |place: &Path, why| LibraryProblem::Untrusted { path: path.to_owned(), place: place.to_owned(), why };
    for (depth, place) in path.ancestors().enumerate() {
        let found = fs::symlink_metadata(place).map_err(|error| unusable(path, &error))?;
        if depth == 0 && !found.is_file() {
            return Err(unusable(path, &"it is not a file"));
        }
        if let Some(why) = untrusted_because(&found, depth) {
            return Err(untrusted(place, why));
        }
    }
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::path::PathBuf;

    use calmix_io::system::user;

    use super::*;

    /// A file three folders deep, each of which only the owner may write.
    fn library() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap().join("a/b");
        fs::create_dir_all(&place).unwrap();
        let file = place.join("libonnxruntime.so.1.31.1");
        fs::write(&file, "").unwrap();
        (folder, file)
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn file_and_folders_must_not_be_writable_by_others() {
        let (_folder, file) = library();
        check(&file).unwrap();
        let parent = file.parent().unwrap();
        let above = parent.parent().unwrap();
        for (place, mode) in [(&*file, 0o666), (parent, 0o777), (parent, 0o1777), (above, 0o777)] {
            set_mode(place, mode);
            let refused = check(&file).unwrap_err();
            assert!(
                matches!(&refused, LibraryProblem::Untrusted { place: named, .. } if named == place),
                "{refused}"
            );
            set_mode(place, 0o755);
        }
        // As /tmp.
        set_mode(above, 0o1777);
        check(&file).unwrap();
        assert!(check(parent).is_err(), "a folder is not a library");
    }

    #[test]
    fn file_and_folders_must_belong_to_the_user_or_root() {
        let (_folder, file) = library();
        let parent = file.parent().unwrap();
        for place in [&*file, parent, parent.parent().unwrap()] {
            // Only root may give files away.
            if chown(place, Some(12345), Some(12345)).is_err() {
                return;
            }
            let refused = check(&file).unwrap_err();
            assert!(refused.to_string().contains("belongs to another user"), "{refused}");
            chown(place, user(), Some(12345)).unwrap();
            check(&file).unwrap();
            set_mode(place, 0o775);
            assert!(check(&file).is_err(), "a group of others may write it");
            chown(place, user(), user()).unwrap();
            check(&file).unwrap();
            set_mode(place, 0o755);
        }
    }
}
