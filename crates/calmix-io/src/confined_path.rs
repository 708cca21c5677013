//! A path that is confined to a folder.
//!
//! Checking a path before opening it is not enough: another process with write access can replace a folder by a link in
//! between. Everything below the folder that the user named is therefore opened relative to handles, without following
//! links: by one `openat2` call on Linux, or by one `openat` per name if the kernel or a sandbox does not allow that call.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

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

    /// Opens it with `flags`, never following links below the root.
    pub(crate) fn open(&self, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let names = self.names()?;
        if names.is_empty() {
            return Ok(rustix::fs::openat(
                CWD,
                or_current_folder(&self.root),
                flags - OFlags::NOFOLLOW,
                MODE,
            )?
            .into());
        }
        let root = open_root(&self.root)?;
        match open_beneath(&root, &names, flags) {
            // Older kernels lack the call, and sandboxes refuse it.
            Err(Errno::NOSYS | Errno::PERM) => Ok(open_by_name(root, &names, flags)?.into()),
            opened => Ok(opened?.into()),
        }
    }

    /// Creates a folder with this name.
    pub(crate) fn create_folder(&self) -> io::Result<()> {
        let (folder, name) = self.open_parent()?;
        Ok(rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777))?)
    }

    /// Creates a folder with this name that only this user can read.
    pub(crate) fn create_private_folder(&self) -> io::Result<()> {
        let (folder, name) = self.open_parent()?;
        Ok(rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o700))?)
    }

    /// Renames it, replacing the target.
    pub(crate) fn rename(&self, to: &Self) -> io::Result<()> {
        let (folder, name) = self.open_parent()?;
        let (new_folder, new_name) = to.open_parent()?;
        Ok(rustix::fs::renameat(folder, name, new_folder, new_name)?)
    }

    /// Creates a hard link with this name to the file `from`.
    ///
    /// # Errors
    /// If the name is taken, or the file system has no hard links.
    pub fn hard_link(&self, from: &Path) -> io::Result<()> {
        let (folder, name) = self.open_parent()?;
        Ok(rustix::fs::linkat(CWD, from, folder, name, AtFlags::empty())?)
    }

    /// Removes a file, or a link rather than its target.
    pub(crate) fn remove_file(&self) -> io::Result<()> {
        let (folder, name) = self.open_parent()?;
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
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
        let (folder, name) = self.open_parent()?;
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
    }

    /// Lists the names in the folder.
    pub(crate) fn entries(&self) -> io::Result<Vec<OsString>> {
        let folder = self.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    /// Returns a handle of the parent folder, and the name in it.
    fn open_parent(&self) -> io::Result<(File, &OsStr)> {
        let name = self.names()?.pop().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok((self.folder().open(PATH_ONLY | OFlags::DIRECTORY)?, name))
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

/// The permissions of new files, before the umask.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// The flags for opening a folder as the base of another path; on Linux, this does not need permission to list it.
#[cfg(target_os = "linux")]
const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PATH_ONLY: OFlags = OFlags::RDONLY;

fn open_root(root: &Path) -> io::Result<OwnedFd> {
    let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, or_current_folder(root), flags, Mode::empty())?)
}

/// Returns `.` for an empty path, which means the working directory.
fn or_current_folder(root: &Path) -> &Path {
    if root.as_os_str().is_empty() { Path::new(".") } else { root }
}

#[cfg(target_os = "linux")]
fn open_beneath(root: impl AsFd, names: &[&OsStr], flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let below: PathBuf = names.iter().collect();
    let mode = if flags.contains(OFlags::CREATE) { MODE } else { Mode::empty() };
    rustix::fs::openat2(root, below, flags, mode, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(_: impl AsFd, _: &[&OsStr], _: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

fn open_by_name(mut folder: OwnedFd, names: &[&OsStr], flags: OFlags) -> Result<OwnedFd, Errno> {
    let Some((last, folders)) = names.split_last() else { return Err(Errno::INVAL) };
    for name in folders {
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        folder = rustix::fs::openat(&folder, *name, flags, Mode::empty())?;
    }
    rustix::fs::openat(&folder, *last, flags, MODE)
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
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Both ways of opening refuse `folder/inner/file` after `inner` was replaced by a link.
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
        let by_name = |file: &ConfinedPath, flags| {
            open_by_name(open_root(&folder).unwrap(), &file.names().unwrap(), flags | OFlags::NOFOLLOW)
        };
        file.open(OFlags::RDONLY).unwrap();
        by_name(&file, OFlags::RDONLY).unwrap();
        fs::rename(folder.join("inner"), folder.join("before")).unwrap();
        symlink(&outside, folder.join("inner")).unwrap();

        for flags in [OFlags::RDONLY, OFlags::RDWR | OFlags::CREATE] {
            for name in ["file", "new"] {
                file.with_file_name(name).open(flags).unwrap_err();
                by_name(&file.with_file_name(name), flags).unwrap_err();
            }
        }
        inner.entries().unwrap_err();
        inner.join("new").create_folder().unwrap_err();
        file.remove_file().unwrap_err();
        file.rename(&inner.join("new")).unwrap_err();
        ConfinedPath::root(&folder).join("before/file").rename(&inner.join("new")).unwrap_err();
        inner.join("new").hard_link(&folder.join("before/file")).unwrap_err();
        inner.remove_folder().unwrap_err();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "precious");
        // Neither way follows a link at the last name.
        let link = ConfinedPath::root(&folder).join("link");
        symlink(outside.join("file"), &link).unwrap();
        link.open(OFlags::RDONLY).unwrap_err();
        by_name(&link, OFlags::RDONLY).unwrap_err();
    }

    #[test]
    fn root_may_be_a_link_and_nothing_leaves_it() {
        let temp = tempfile::tempdir().unwrap();
        let real = temp.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink(&real, temp.path().join("link")).unwrap();
        let root = ConfinedPath::root(temp.path().join("link"));
        let file = root.join("a");
        file.open(OFlags::RDWR | OFlags::CREATE).unwrap().write_all(b"own").unwrap();
        assert_eq!(fs::read_to_string(real.join("a")).unwrap(), "own");
        root.join("b").create_folder().unwrap();
        file.rename(&root.join("b/a")).unwrap();
        assert_eq!(root.join("b").entries().unwrap(), ["a"]);
        root.join("b").remove_folder().unwrap();
        assert!(root.entries().unwrap().is_empty());
        for leaving in ["..", "../link/a", "/etc/passwd", "b/../../x"] {
            root.join(leaving).open(OFlags::RDONLY).unwrap_err();
            root.join(leaving).create_folder().unwrap_err();
        }
    }
}
