//! The sources that remain to be listed: paths, lines, and the rest of a folder or tar.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use calmix_cloud::CloudUrl;
use calmix_formats::decode::kind;
use calmix_formats::listing::image_kind::has_image_extension;
use calmix_formats::listing::is_system_file;
use calmix_formats::tar::TarMembers;
use calmix_io::system::path_from_bytes;

use super::listed_image::{ImagePlace, ListedImage};
use super::shard_file::{FileShard, PendingShards, ShardFile};
use crate::error::DataError;

/// The deepest nesting of folders.
const MAX_DEPTH: usize = 64;
/// The maximum length of a line in a list, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 10;
/// Bytes at the start of a file that are enough to recognise an image.
const HEAD: u64 = 64;

/// A source of images: paths, lines, a folder or a tar. If `shard` is set, files of other shards are skipped.
pub(super) enum PendingImages {
    Paths(IntoIter<PathBuf>, Option<FileShard>),
    Lines(Box<dyn BufRead + Send>, Option<FileShard>),
    Folder(PendingFolder),
    /// The tars at a URL.
    Remote(PendingShards),
    Tar {
        tar: ShardFile,
        /// Unbuffered: a header has 512 bytes, and skipping to the next one would discard the buffer.
        members: TarMembers<File>,
    },
}

/// The remaining entries of a folder.
pub(super) struct PendingFolder {
    /// The canonical path of the folder; its files must lie below it.
    real: PathBuf,
    path: PathBuf,
    relative: OsString,
    entries: IntoIter<Entry>,
    shard: Option<FileShard>,
}

/// A name in a folder.
pub(super) struct Entry {
    name: OsString,
    is_folder: bool,
    is_link: bool,
}

/// The result of one step through a list.
pub(super) enum ListStep {
    Image(ListedImage),
    /// A folder or tar to descend into.
    Into(PendingImages),
    /// An entry that is not an image, or belongs to another shard.
    Passed,
    /// The end of the list.
    Over,
    /// The rest cannot be read: one last row that says so.
    Broken(ListedImage),
    /// A store failed, so the list cannot continue.
    Failed(DataError),
}

impl std::fmt::Debug for PendingImages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Paths(..) => "Paths",
            Self::Lines(..) => "Lines",
            Self::Folder(_) => "Folder",
            Self::Remote(_) => "Remote",
            Self::Tar { .. } => "Tar",
        })
    }
}

impl PendingImages {
    /// Restricts the source to the files of a shard.
    pub(super) fn share(&mut self, wanted: FileShard) {
        match self {
            Self::Paths(_, shard) | Self::Lines(_, shard) => *shard = Some(wanted),
            Self::Folder(folder) => folder.shard = Some(wanted),
            // These were selected when they were opened.
            Self::Remote(_) | Self::Tar { .. } => {}
        }
    }

    pub(super) fn step(&mut self, depth: usize) -> ListStep {
        match self {
            Self::Paths(paths, shard) => paths.next().map_or(ListStep::Over, |path| of_path(&path, *shard)),
            Self::Lines(lines, shard) => of_line(lines, *shard),
            Self::Folder(folder) => match folder.entries.next() {
                Some(entry) => folder.of_entry(&entry, depth),
                None => ListStep::Over,
            },
            Self::Remote(shards) => match shards.next() {
                Some(tar) => of_remote(tar),
                None => ListStep::Over,
            },
            Self::Tar { tar, members } => match members.next() {
                None => ListStep::Over,
                Some(Ok(member)) if !is_image_member(&member.name) => ListStep::Passed,
                Some(Ok(member)) => ListStep::Image(ListedImage {
                    path: joined(tar.path().as_os_str(), member.name.as_ref()),
                    place: ImagePlace::Member {
                        tar: tar.clone(),
                        offset: member.offset,
                        length: member.length,
                    },
                }),
                Some(Err(error)) => {
                    let problem = format!("the rest of the shard cannot be read: {error}");
                    ListStep::Broken(ListedImage::unreadable(tar.path().as_os_str(), problem))
                }
            },
        }
    }
}

/// Opens a path that the user gave, which may lead anywhere.
fn of_path(path: &Path, shard: Option<FileShard>) -> ListStep {
    let is_wanted = is_in(shard, path.as_os_str());
    if let Some(url) = CloudUrl::parse(path) {
        return of_url(&url, is_wanted, shard);
    }
    let is_named_like_a_file = has_image_extension(&path.to_string_lossy()) || is_named_like_a_tar(path);
    // Without a system call, because each of many processes may read a list of millions of lines.
    if !is_wanted && is_named_like_a_file {
        return ListStep::Passed;
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            // The other shards skipped a folder that is named like a file, so this one takes all of it.
            let shard = if is_named_like_a_file { None } else { shard };
            match fs::canonicalize(path) {
                Ok(real) => of_folder(real, path.to_owned(), OsString::new(), shard),
                Err(error) => unreadable_if(is_wanted, path, &error.to_string()),
            }
        }
        Ok(_) if is_wanted => of_file(path.to_owned()),
        Ok(_) => ListStep::Passed,
        Err(error) => unreadable_if(is_wanted, path, &error.to_string()),
    }
}

/// Opens a URL: a single tar, which belongs to one shard, or several, which are distributed by name.
fn of_url(url: &CloudUrl, is_wanted: bool, shard: Option<FileShard>) -> ListStep {
    let is_one = is_named_like_a_tar(Path::new(url.as_str())) && !url.key().contains('{');
    if is_one && !is_wanted {
        return ListStep::Passed;
    }
    match PendingShards::open(url, if is_one { None } else { shard }) {
        Ok(shards) => ListStep::Into(PendingImages::Remote(shards)),
        Err(error) => ListStep::Failed(error),
    }
}

/// Fetches and opens a tar. A failure ends the list: otherwise rows without predictions would look as if they were done.
fn of_remote(tar: ShardFile) -> ListStep {
    let opened = tar.open().and_then(|file| Ok(TarMembers::new(file)?));
    match opened {
        Ok(members) => ListStep::Into(PendingImages::Tar { tar, members }),
        Err(problem) => ListStep::Failed(DataError::new(tar.path(), problem)),
    }
}

fn of_line(lines: &mut Box<dyn BufRead + Send>, shard: Option<FileShard>) -> ListStep {
    let mut line = Vec::new();
    let broken = |problem: String| {
        let name = OsStr::new("the list of paths");
        // One row reports this, rather than one per shard.
        if is_in(shard, name) {
            ListStep::Broken(ListedImage::unreadable(name, problem))
        } else {
            ListStep::Over
        }
    };
    match lines.take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
        Ok(0) => return ListStep::Over,
        Ok(length) if length as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") => {
            return broken(format!("a line is longer than {MAX_LINE_BYTES} bytes"));
        }
        Ok(_) => {}
        Err(error) => return broken(error.to_string()),
    }
    let end = line.strip_suffix(b"\n").unwrap_or(&line);
    let end = end.strip_suffix(b"\r").unwrap_or(end);
    if end.is_empty() {
        return ListStep::Passed;
    }
    of_path(&path_from_bytes(end), shard)
}

impl PendingFolder {
    fn of_entry(&self, entry: &Entry, depth: usize) -> ListStep {
        let path = self.path.join(&entry.name);
        let relative = joined(&self.relative, &entry.name);
        let is_wanted = is_in(self.shard, &relative);
        if entry.is_folder {
            if depth > MAX_DEPTH {
                return unreadable_if(is_wanted, &path, "the folders are nested too deeply");
            }
            return of_folder(self.real.clone(), path, relative, self.shard);
        }
        // Before reading the file, because its kind may depend on its first bytes.
        if !is_wanted {
            return ListStep::Passed;
        }
        if entry.is_link {
            if fs::canonicalize(&path).is_ok_and(|real| !real.starts_with(&self.real)) {
                let problem = "a link that leads out of the folder; calmix does not follow it";
                return unreadable_if(true, &path, problem);
            }
            if path.is_dir() {
                return unreadable_if(true, &path, "a link to a folder; calmix does not follow it");
            }
        }
        if is_image_file(&path) || is_tar(&path) { of_file(path) } else { ListStep::Passed }
    }
}

fn is_in(shard: Option<FileShard>, relative: &OsStr) -> bool {
    shard.is_none_or(|shard| shard.has(relative))
}

/// Returns an error row for `path` if this shard contains it.
fn unreadable_if(is_wanted: bool, path: &Path, problem: &str) -> ListStep {
    if is_wanted {
        ListStep::Image(ListedImage::unreadable(path.as_os_str(), problem.to_owned()))
    } else {
        ListStep::Passed
    }
}

/// Lists a folder in byte order of the paths below it.
fn of_folder(real: PathBuf, path: PathBuf, relative: OsString, shard: Option<FileShard>) -> ListStep {
    let entries = fs::read_dir(&path).and_then(|entries| {
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let kind = entry.file_type()?;
            if !is_system_file(&name.to_string_lossy()) {
                found.push(Entry { name, is_folder: kind.is_dir(), is_link: kind.is_symlink() });
            }
        }
        Ok(found)
    });
    match entries {
        Ok(mut entries) => {
            // The order of full paths: `a.png` comes before `a/b.png`, because a dot sorts before a slash.
            entries.sort_by_cached_key(|entry| {
                let mut key = entry.name.as_encoded_bytes().to_vec();
                key.extend(entry.is_folder.then_some(b'/'));
                key
            });
            let entries = entries.into_iter();
            ListStep::Into(PendingImages::Folder(PendingFolder { real, path, relative, entries, shard }))
        }
        Err(error) => {
            // The folder itself, if the user named it.
            let name = if relative.is_empty() { path.as_os_str() } else { &relative };
            unreadable_if(is_in(shard, name), &path, &error.to_string())
        }
    }
}

fn of_file(path: PathBuf) -> ListStep {
    if !is_tar(&path) {
        let name = path.as_os_str().to_owned();
        return ListStep::Image(ListedImage { path: name, place: ImagePlace::File(path) });
    }
    match File::open(&path).and_then(TarMembers::new) {
        Ok(members) => ListStep::Into(PendingImages::Tar { tar: ShardFile::Local(path), members }),
        Err(error) => unreadable_if(true, &path, &error.to_string()),
    }
}

/// Joins `child` to `parent`, with a slash on every system.
fn joined(parent: &OsStr, child: &OsStr) -> OsString {
    let mut path = parent.to_owned();
    if !path.is_empty() {
        path.push("/");
    }
    path.push(child);
    path
}

fn is_tar(path: &Path) -> bool {
    is_named_like_a_tar(path) && path.is_file()
}

fn is_named_like_a_tar(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tar"))
}

/// Recognises an image by its name or by its first bytes.
fn is_image_file(path: &Path) -> bool {
    if has_image_extension(&path.to_string_lossy()) {
        return true;
    }
    let mut head = Vec::new();
    let read = |file: File| file.take(HEAD).read_to_end(&mut head);
    // A pipe could block forever.
    path.is_file() && File::open(path).and_then(read).is_ok() && kind(&head).is_image()
}

/// Returns whether WebDataset would treat the member as an image; hidden members are not images.
fn is_image_member(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    let extension =
        base.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
    let known = ["jpg", "jpeg", "png", "webp"];
    extension.is_some_and(|extension| known.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}
