//! The remainder of a list: paths, lines, the rest of a folder or of a shard.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use super::{ImagePlace, ListedImage};
use crate::decode::{DecodeLimits, kind};
use crate::encoded_file::EncodedFile;
use crate::error::DataProblem;
use crate::source::image_kind::is_named_like_an_image;
use crate::source::listing::is_system_file;
use crate::source::tar::TarMembers;

/// The deepest nesting of folders.
const DEEPEST: usize = 64;
/// Bytes of the longest line of a list.
const LONGEST_LINE: u64 = 64 << 10;
/// Bytes at the start of a file that are enough to recognise an image.
const HEAD: u64 = 64;

/// A source of images: paths, lines, a folder or a shard.
pub(super) enum PendingImages {
    Paths(IntoIter<PathBuf>),
    Lines(Box<dyn BufRead + Send>),
    Folder {
        /// The canonical path of the folder; its files must lie below it.
        real: PathBuf,
        path: PathBuf,
        relative: OsString,
        entries: IntoIter<Entry>,
    },
    Shard {
        file: PathBuf,
        path: OsString,
        relative: OsString,
        members: TarMembers<BufReader<File>>,
    },
}

/// A name in a folder.
pub(super) struct Entry {
    name: OsString,
    is_folder: bool,
    is_link: bool,
}

/// The next step through a list.
pub(super) enum ListStep {
    Image(ListedImage),
    /// A folder or shard to descend into.
    Into(PendingImages),
    /// An entry that is not an image.
    Passed,
    /// No more.
    Over,
    /// No more, because the rest cannot be read.
    Broken(ListedImage),
}

impl std::fmt::Debug for PendingImages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Paths(_) => "Paths",
            Self::Lines(_) => "Lines",
            Self::Folder { .. } => "Folder",
            Self::Shard { .. } => "Shard",
        })
    }
}

impl PendingImages {
    pub(super) fn step(&mut self, depth: usize) -> ListStep {
        match self {
            Self::Paths(paths) => paths.next().map_or(ListStep::Over, |path| of_path(&path)),
            Self::Lines(lines) => of_line(lines),
            Self::Folder { real, path, relative, entries } => {
                let Some(entry) = entries.next() else { return ListStep::Over };
                let (path, relative) = (path.join(&entry.name), joined(relative, &entry.name));
                of_entry(&entry, real, path, relative, depth)
            }
            Self::Shard { file, path, relative, members } => match members.next() {
                None => ListStep::Over,
                Some(Ok(member)) if !is_image_member(&member.name) => ListStep::Passed,
                Some(Ok(member)) => ListStep::Image(ListedImage {
                    path: joined(path, member.name.as_ref()),
                    relative: joined(relative, member.name.as_ref()),
                    place: ImagePlace::Member {
                        shard: file.clone(),
                        offset: member.offset,
                        length: member.length,
                    },
                }),
                Some(Err(error)) => {
                    let problem = format!("the rest of the shard cannot be read: {error}");
                    ListStep::Broken(ListedImage::nowhere(path.clone(), relative.clone(), problem))
                }
            },
        }
    }
}

/// A path that the user gave: it may lead anywhere.
fn of_path(path: &Path) -> ListStep {
    let name = path.as_os_str().to_owned();
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => match fs::canonicalize(path) {
            Ok(real) => of_folder(&real, path.to_owned(), OsString::new()),
            Err(error) => ListStep::Image(ListedImage::nowhere(name.clone(), name, error.to_string())),
        },
        Ok(_) => of_file(path.to_owned(), name),
        Err(error) => ListStep::Image(ListedImage::nowhere(name.clone(), name, error.to_string())),
    }
}

fn of_line(lines: &mut Box<dyn BufRead + Send>) -> ListStep {
    let mut line = Vec::new();
    let broken = |problem: String| {
        let name = OsString::from("the list of paths");
        ListStep::Broken(ListedImage::nowhere(name.clone(), name, problem))
    };
    match lines.take(LONGEST_LINE).read_until(b'\n', &mut line) {
        Ok(0) => return ListStep::Over,
        Ok(length) if length as u64 == LONGEST_LINE && !line.ends_with(b"\n") => {
            return broken(format!("a line is longer than {LONGEST_LINE} bytes"));
        }
        Ok(_) => {}
        Err(error) => return broken(error.to_string()),
    }
    let end = line.strip_suffix(b"\n").unwrap_or(&line);
    let end = end.strip_suffix(b"\r").unwrap_or(end);
    if end.is_empty() {
        return ListStep::Passed;
    }
    of_path(&path_of_bytes(end))
}

fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn of_entry(entry: &Entry, root: &Path, path: PathBuf, relative: OsString, depth: usize) -> ListStep {
    let nowhere = |path: PathBuf, relative: OsString, problem: &str| {
        ListStep::Image(ListedImage::nowhere(path.into_os_string(), relative, problem.to_owned()))
    };
    if entry.is_link {
        let leads_out = fs::canonicalize(&path).is_ok_and(|real| !real.starts_with(root));
        if leads_out {
            return nowhere(path, relative, "a link that leads out of the folder; calmix does not follow it");
        }
        if path.is_dir() {
            return nowhere(path, relative, "a link to a folder; calmix does not follow it");
        }
    }
    if entry.is_folder {
        if depth > DEEPEST {
            return nowhere(path, relative, "the folders are nested too deeply");
        }
        return of_folder(root, path, relative);
    }
    if is_image_file(&path) || is_shard(&path) { of_file(path, relative) } else { ListStep::Passed }
}

/// Files and folders in the order of the bytes of the paths below.
fn of_folder(root: &Path, path: PathBuf, relative: OsString) -> ListStep {
    let entries = fs::read_dir(&path).and_then(|entries| {
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if !is_system_file(&name.to_string_lossy()) {
                found.push(Entry { name, is_folder: kind.is_dir(), is_link: kind.is_symlink() });
            }
        }
        Ok(found)
    });
    match entries {
        Ok(mut entries) => {
            // The order of whole paths: `a.png` comes before `a/b.png`, because a dot sorts before a slash.
            entries.sort_by_cached_key(|entry| {
                let mut key = entry.name.as_encoded_bytes().to_vec();
                key.extend(entry.is_folder.then_some(b'/'));
                key
            });
            ListStep::Into(PendingImages::Folder {
                real: root.to_owned(),
                path,
                relative,
                entries: entries.into_iter(),
            })
        }
        Err(error) => {
            ListStep::Image(ListedImage::nowhere(path.into_os_string(), relative, error.to_string()))
        }
    }
}

fn of_file(path: PathBuf, relative: OsString) -> ListStep {
    let name = path.as_os_str().to_owned();
    if !is_shard(&path) {
        return ListStep::Image(ListedImage { path: name, relative, place: ImagePlace::File(path) });
    }
    match File::open(&path).and_then(|file| TarMembers::new(BufReader::new(file))) {
        Ok(members) => ListStep::Into(PendingImages::Shard { file: path, path: name, relative, members }),
        Err(error) => ListStep::Image(ListedImage::nowhere(name, relative, error.to_string())),
    }
}

/// `child` below `parent`, with a slash on every system.
fn joined(parent: &OsStr, child: &OsStr) -> OsString {
    let mut path = parent.to_owned();
    if !path.is_empty() {
        path.push("/");
    }
    path.push(child);
    path
}

fn is_shard(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tar")) && path.is_file()
}

/// Recognises an image by its name or by its first bytes.
fn is_image_file(path: &Path) -> bool {
    if is_named_like_an_image(&path.to_string_lossy()) {
        return true;
    }
    let mut head = Vec::new();
    let read = |file: File| file.take(HEAD).read_to_end(&mut head);
    // A pipe could block forever.
    path.is_file() && File::open(path).and_then(read).is_ok() && kind(&head).is_image()
}

/// Whether WebDataset would take the member for an image; hidden members are not images.
fn is_image_member(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    let ending = base.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending);
    let known = ["jpg", "jpeg", "png", "webp"];
    ending.is_some_and(|ending| known.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// The bytes of a member of a shard.
pub(super) fn read(
    shard: &Path,
    offset: u64,
    length: u64,
    limits: &DecodeLimits,
) -> Result<EncodedFile, DataProblem> {
    let mut file = File::open(shard)?;
    file.seek(SeekFrom::Start(offset))?;
    EncodedFile::read_member(file, length, limits)
}
