//! The check whether another user could have written a library.

use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use calmix_io::safe_open::user;

use super::problem::{LibraryProblem, unusable};

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Refuses a library that another user could have written or replaced. The path must contain no links.
pub(super) fn check(path: &Path) -> Result<(), LibraryProblem> {
    let untrusted =
        |place: &Path, why| LibraryProblem::Untrusted { path: path.to_owned(), place: place.to_owned(), why };
    for (depth, place) in path.ancestors().enumerate() {
        let found = fs::symlink_metadata(place).map_err(|error| unusable(path, &error))?;
        if depth == 0 && !found.is_file() {
            return Err(unusable(path, &"it is not a file"));
        }
        if ![user(), 0].contains(&found.uid()) {
            return Err(untrusted(place, "belongs to another user"));
        }
        // In a sticky folder such as /tmp, users cannot replace each other's folders, but all may add files. So it may be above
        // the folder of the library, but not be that folder itself.
        let is_guarded = depth >= 2 && found.permissions().mode() & STICKY != 0;
        if is_writable_by_others(&found) && !is_guarded {
            return Err(untrusted(place, "can be written by other users"));
        }
    }
    Ok(())
}

/// Returns whether users other than its owner may write it. The group of root and the user's private group, which has the user's
/// number, do not count.
fn is_writable_by_others(found: &Metadata) -> bool {
    let mode = found.permissions().mode();
    let is_private = [user(), 0].contains(&found.gid());
    mode & OTHERS_WRITE != 0 || (mode & GROUP_WRITES != 0 && !is_private)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::chown;
    use std::path::PathBuf;

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
            chown(place, Some(user()), Some(12345)).unwrap();
            check(&file).unwrap();
            set_mode(place, 0o775);
            assert!(check(&file).is_err(), "a group of others may write it");
            chown(place, Some(user()), Some(user())).unwrap();
            check(&file).unwrap();
            set_mode(place, 0o755);
        }
    }
}
