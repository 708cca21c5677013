//! A path that is confined to a folder.
//!
//! Checking a path before opening it is not enough: another process with write access can replace a folder by a link in
//! between. Everything below the folder that the user named is therefore opened relative to handles, without following
//! links, where the system has them (`system.rs`): by one `openat2` call on Linux, or by one `openat` per name if the kernel
//! or a sandbox does not allow that call.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};

use crate::system::{self, Access, FolderOf};

/// A path that is confined to a folder. Links are followed up to this folder, but not below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfinedPath {
    root: PathBuf,
    path: PathBuf,
}

impl ConfinedPath {
    /// Returns the root itself, the folder that the user named.
    pub fn root(folder: impl Into<PathBuf>) -> Self {
        let root = folder.into();
        Self { path: root.clone(), root }
    }

    /// Returns a path below it.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        Self { root: self.root.clone(), path: self.path.join(name) }
    }

    /// Returns the path with another file name in the same folder.
    #[must_use]
    pub fn with_file_name(&self, name: impl AsRef<OsStr>) -> Self {
        Self { root: self.root.clone(), path: self.path.with_file_name(name) }
    }

    /// Returns the parent folder; the root if there is none below it.
    #[must_use]
    pub fn folder(&self) -> Self {
        let below = self.path.parent().filter(|folder| folder.starts_with(&self.root));
        Self { root: self.root.clone(), path: below.unwrap_or(&self.root).to_owned() }
    }

    /// Opens the file, never following links below the root.
    pub(crate) fn open(&self, access: Access) -> io::Result<File> {
        system::open(&self.root, &self.names()?, access)
    }

    /// Creates a folder with this name.
    pub(crate) fn create_folder(&self) -> io::Result<()> {
        system::create_folder(&self.root, &self.names()?, FolderOf::Everybody)
    }

    /// Creates a folder with this name that only this user can read.
    pub(crate) fn create_private_folder(&self) -> io::Result<()> {
        system::create_folder(&self.root, &self.names()?, FolderOf::ThisUser)
    }

    /// Renames it, replacing the target.
    pub(crate) fn rename(&self, to: &Self) -> io::Result<()> {
        system::rename((&self.root, &self.names()?), (&to.root, &to.names()?))
    }

    /// Creates a hard link with this name to the file `from`.
    ///
    /// # Errors
    /// If the name is taken, or the file system has no hard links.
    pub fn hard_link(&self, from: &Path) -> io::Result<()> {
        system::hard_link(from, &self.root, &self.names()?)
    }

    /// Removes a file, or a link rather than its target.
    pub(crate) fn remove_file(&self) -> io::Result<()> {
        system::remove_file(&self.root, &self.names()?)
    }

    /// Removes a folder and its contents.
    pub(crate) fn remove_folder(&self) -> io::Result<()> {
        for name in self.entries()? {
            self.join(name).remove_anything()?;
        }
        self.remove_empty_folder()
    }

    /// Removes a folder with its contents, a file, or a link rather than its target.
    pub(crate) fn remove_anything(&self) -> io::Result<()> {
        if self.symlink_metadata()?.is_dir() { self.remove_folder() } else { self.remove_file() }
    }

    /// Removes an empty folder.
    pub(crate) fn remove_empty_folder(&self) -> io::Result<()> {
        system::remove_empty_folder(&self.root, &self.names()?)
    }

    /// Lists the names in the folder.
    pub(crate) fn entries(&self) -> io::Result<Vec<OsString>> {
        system::entries(&self.root, &self.names()?)
    }

    /// Synchronises the folder: returns when its entries are on disk.
    pub(crate) fn sync_folder(&self) -> io::Result<()> {
        system::sync_folder(&self.root, &self.names()?)
    }

    /// Returns the path components below the root.
    fn names(&self) -> io::Result<Vec<&OsStr>> {
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "the path leads out of its folder");
        let below = self.path.strip_prefix(&self.root).map_err(|_| outside())?;
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if !below.components().all(plain) {
            return Err(outside());
        }
        Ok(below.iter().collect())
    }
}

/// A file or folder that the user named: links are not followed, neither at its own name nor below it.
impl From<&Path> for ConfinedPath {
    fn from(path: &Path) -> Self {
        let root = path.parent().filter(|_| path.file_name().is_some()).unwrap_or(path);
        Self { root: root.to_owned(), path: path.to_owned() }
    }
}

impl From<&PathBuf> for ConfinedPath {
    fn from(path: &PathBuf) -> Self {
        path.as_path().into()
    }
}

impl From<&Self> for ConfinedPath {
    fn from(path: &Self) -> Self {
        path.clone()
    }
}

impl Deref for ConfinedPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for ConfinedPath {
    fn as_ref(&self) -> &Path {
        self
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    /// `folder/inner/file` is refused after `inner` was replaced by a link.
    #[test]
    fn link_in_the_place_of_a_folder_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let [outside, folder] = ["outside", "folder"].map(|name| temp.path().join(name));
        fs::create_dir(&outside).unwrap();
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::write(outside.join("file"), "precious").unwrap();
        fs::write(folder.join("inner/file"), "own").unwrap();
        let inner = ConfinedPath::root(&folder).join("inner");
        let file = inner.join("file");
        file.open(Access::Read).unwrap();
        fs::rename(folder.join("inner"), folder.join("before")).unwrap();
        symlink(&outside, folder.join("inner")).unwrap();

        for access in [Access::Read, Access::Write, Access::ReadWrite, Access::Append, Access::New] {
            for name in ["file", "new"] {
                file.with_file_name(name).open(access).unwrap_err();
            }
        }
        inner.entries().unwrap_err();
        inner.sync_folder().unwrap_err();
        inner.join("new").create_folder().unwrap_err();
        file.remove_file().unwrap_err();
        file.rename(&inner.join("new")).unwrap_err();
        ConfinedPath::root(&folder).join("before/file").rename(&inner.join("new")).unwrap_err();
        inner.join("new").hard_link(&folder.join("before/file")).unwrap_err();
        inner.remove_folder().unwrap_err();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "precious");
        // No link at the last name is followed either.
        let link = ConfinedPath::root(&folder).join("link");
        symlink(outside.join("file"), &link).unwrap();
        link.open(Access::Read).unwrap_err();
    }

    #[test]
    fn root_may_be_a_link_and_nothing_leaves_it() {
        let temp = tempfile::tempdir().unwrap();
        let real = temp.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink(&real, temp.path().join("link")).unwrap();
        let root = ConfinedPath::root(temp.path().join("link"));
        let file = root.join("a");
        file.open(Access::ReadWrite).unwrap().write_all(b"own").unwrap();
        assert_eq!(fs::read_to_string(real.join("a")).unwrap(), "own");
        root.join("b").create_folder().unwrap();
        file.rename(&root.join("b/a")).unwrap();
        assert_eq!(root.join("b").entries().unwrap(), ["a"]);
        root.join("b").remove_folder().unwrap();
        assert!(root.entries().unwrap().is_empty());
        for leaving in ["..", "../link/a", "/etc/passwd", "b/../../x"] {
            root.join(leaving).open(Access::Read).unwrap_err();
            root.join(leaving).create_folder().unwrap_err();
        }
    }
}
