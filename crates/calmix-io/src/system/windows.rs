//! Windows: file names instead of handles, no user ids, no signals.

use std::borrow::Cow;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus};
use std::time::Duration;
use std::{fmt, thread};

use winapi_util::Handle;
use winapi_util::file::information;

use super::arguments::{Access, EndSignal, FolderOf, ProcessLimits, Signal, StopRequest, no_name};

/// Opens the file with these names below `root`, if none of them is a link or a junction.
pub(crate) fn open(root: &Path, names: &[&OsStr], access: Access) -> io::Result<File> {
    let path = checked(root, names)?;
    let mut options = File::options();
    match access {
        Access::Read => options.read(true),
        Access::Write => options.write(true),
        Access::ReadWrite => options.read(true).write(true).create(true),
        Access::Append => options.append(true).create(true),
        // Nobody else writes while it is open, which tells a live scratch file from an abandoned one.
        Access::New => options.read(true).write(true).create_new(true).share_mode(SHARE_READ | SHARE_DELETE),
    };
    options.open(path)
}

/// The hint for a file or folder without read permission.
pub const READ_PERMISSION_HINT: &str = "give yourself read permission, or move it elsewhere";
/// The command that creates a folder and those above it; with `-p`, cmd.exe would create a folder of that name too.
pub const CREATE_FOLDERS: &str = "mkdir";

const SHARE_READ: u32 = 1;
const SHARE_DELETE: u32 = 4;
const SPARSE_FILE: u32 = 0x200;
/// The numbers of errors: the function is not known; a file is open elsewhere; it is not supported.
const INVALID_FUNCTION: i32 = 1;
const ACCESS_DENIED: i32 = 5;
const SHARING_VIOLATION: i32 = 32;
const NOT_SUPPORTED: i32 = 50;

/// How often a rename is tried again, and the time between two tries.
const RENAMES: u32 = 50;
const RENAME_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn create_folder(root: &Path, names: &[&OsStr], _: FolderOf) -> io::Result<()> {
    fs::create_dir(named(root, names)?)
}

/// Renames a file or folder, replacing the target. A program that has one of them open without sharing it, such as a virus
/// scanner, is waited for.
pub(crate) fn rename(from: (&Path, &[&OsStr]), to: (&Path, &[&OsStr])) -> io::Result<()> {
    let (from, to) = (named(from.0, from.1)?, named(to.0, to.1)?);
    let mut tries = 0;
    loop {
        match fs::rename(&from, &to) {
            Err(error) if is_open_elsewhere(&error) && tries < RENAMES => {
                tries += 1;
                thread::sleep(RENAME_INTERVAL);
            }
            Err(error) if is_open_elsewhere(&error) => {
                let message = format!("{error}; close the program that has this file open, and try again");
                return Err(io::Error::new(error.kind(), message));
            }
            renamed => return renamed,
        }
    }
}

fn is_open_elsewhere(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|number| [ACCESS_DENIED, SHARING_VIOLATION].contains(&number))
}

/// Creates a hard link to the file `from`.
pub(crate) fn hard_link(from: &Path, root: &Path, names: &[&OsStr]) -> io::Result<()> {
    fs::hard_link(from, named(root, names)?)
}

/// Removes a file, or a link rather than its target.
pub(crate) fn remove_file(root: &Path, names: &[&OsStr]) -> io::Result<()> {
    fs::remove_file(named(root, names)?)
}

pub(crate) fn remove_empty_folder(root: &Path, names: &[&OsStr]) -> io::Result<()> {
    fs::remove_dir(named(root, names)?)
}

/// Lists the names in a folder.
pub(crate) fn entries(root: &Path, names: &[&OsStr]) -> io::Result<Vec<OsString>> {
    fs::read_dir(checked(root, names)?)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Does nothing: the file system keeps a journal of its names, and a folder cannot be synchronised.
pub(crate) fn sync_folder(root: &Path, names: &[&OsStr]) -> io::Result<()> {
    checked(root, names).map(drop)
}

/// Returns the path of a name whose folders are checked; the name itself may be a link.
fn named(root: &Path, names: &[&OsStr]) -> io::Result<PathBuf> {
    let (name, folders) = names.split_last().ok_or_else(no_name)?;
    check_name(name)?;
    Ok(checked(root, folders)?.join(name))
}

/// Returns the path, if no name below the root is a link or a junction.
fn checked(root: &Path, names: &[&OsStr]) -> io::Result<PathBuf> {
    let mut path = if root.as_os_str().is_empty() { PathBuf::from(".") } else { root.to_owned() };
    for name in names {
        check_name(name)?;
        path.push(name);
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Err(io::Error::other(LinkRefused));
        }
    }
    Ok(path)
}

/// Refuses a name that no file can have.
pub(crate) fn check_name(name: &OsStr) -> io::Result<()> {
    let Some(why) = why_impossible(name) else { return Ok(()) };
    Err(io::Error::new(io::ErrorKind::InvalidFilename, format!("the name {why}; choose another name")))
}

/// Explains why no file can have a name: it means a device, or Windows would change it. `None` if a file can.
pub(crate) fn why_impossible(name: &OsStr) -> Option<&'static str> {
    const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
    // Windows takes the superscripts of Latin-1 for digits.
    let is_digit = |c: char| c.is_ascii_digit() || "¹²³".contains(c);
    let text = name.to_string_lossy();
    let stem = text.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_port = ["COM", "LPT"].iter().any(|port| {
        stem.strip_prefix(port)
            .is_some_and(|number| number.chars().count() == 1 && number.chars().all(is_digit))
    });
    let is_forbidden = |c: char| c.is_control() || r#"<>:"|?*/\"#.contains(c);
    if is_port || DEVICES.contains(&&*stem) {
        Some("means a device on Windows")
    } else if text.contains(is_forbidden) {
        Some("has a character that Windows does not allow")
    } else if text.ends_with(['.', ' ']) {
        Some("ends with a dot or a space, which Windows would cut off")
    } else {
        None
    }
}

/// The error for a link below a folder that the user named.
#[derive(Debug)]
struct LinkRefused;

impl fmt::Display for LinkRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a link is in the path")
    }
}

impl Error for LinkRefused {}

/// Returns whether a path was refused because of a link in it.
pub(crate) fn is_link_refused(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<LinkRefused>())
}

/// Returns whether a lock was refused because the file system has none.
pub(crate) fn has_no_locks(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    number.is_some_and(|number| [INVALID_FUNCTION, NOT_SUPPORTED].contains(&number))
        || error.kind() == io::ErrorKind::Unsupported
}

/// Returns false: there is no list of locks.
pub(crate) fn is_locked_by(_: &File, _: &str) -> bool {
    false
}

/// Does nothing: a new file is opened so that no other process can write to it.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) fn hold_scratch(_: &File) -> Result<(), TryLockError> {
    Ok(())
}

/// Returns whether a path names this open file.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let identity = |found: winapi_util::file::Information| (found.volume_serial_number(), found.file_index());
    let held = information(file).map(identity);
    let found = Handle::from_path_any(path).and_then(information).map(identity);
    matches!((found, held), (Ok(found), Ok(held)) if found == held)
}

/// Returns no bytes for a sparse file, whose size on disk the standard library does not tell, and the length of any other.
pub(crate) fn stored_bytes(found: &Metadata) -> u64 {
    if found.file_attributes() & SPARSE_FILE != 0 { 0 } else { found.len() }
}

/// Returns the number of names of an open file; 0 if it was removed.
pub fn link_count(file: &File) -> io::Result<u64> {
    information(file).map(|found| found.number_of_links())
}

/// Reads some bytes from a position. Moves the file's own position.
pub fn read_at(file: &File, bytes: &mut [u8], position: u64) -> io::Result<usize> {
    file.seek_read(bytes, position)
}

/// Returns the bytes of a path as `calmix predict` writes it: with slashes, as on other systems, and without the prefix that
/// [`fs::canonicalize`] adds.
pub(crate) fn path_bytes(path: &OsStr) -> Cow<'_, [u8]> {
    let text = path.to_string_lossy();
    let text = match text.strip_prefix(r"\\?\") {
        Some(rest) => {
            rest.strip_prefix(r"UNC\").map_or_else(|| rest.to_owned(), |share| format!(r"\\{share}"))
        }
        None => text.into_owned(),
    };
    text.replace('\\', "/").into_bytes().into()
}

/// Returns a path that was written as bytes, which are UTF-8.
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Returns whether two files are on one volume.
pub fn is_on_same_device(one: &Path, other: &Path) -> bool {
    let volume = |path: &Path| {
        let handle = Handle::from_path_any(path).ok()?;
        information(handle).ok().map(|found| found.volume_serial_number())
    };
    volume(one).is_some() && volume(one) == volume(other)
}

/// Returns `None`: Windows has no user ids.
pub fn user() -> Option<u32> {
    None
}

/// Returns `None`: Windows has no user ids.
pub fn owner(_: &Metadata) -> Option<u32> {
    None
}

/// Returns `None`: access lists are not read.
pub fn untrusted_because(_: &Metadata, _: usize) -> Option<&'static str> {
    None
}

pub(crate) fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Does nothing: there is no limit that a process could raise.
pub fn raise_open_files() {}

/// Returns `None`: the number of open files is not limited.
pub fn max_open_files() -> Option<u64> {
    None
}

/// Does nothing: Windows limits a process only from outside.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub fn limit_this_process(_: ProcessLimits) -> io::Result<()> {
    Ok(())
}

/// Runs a program and ends this process with its exit code; returns only if it cannot be started.
pub fn replace_process(command: &mut Command) -> io::Error {
    // Ctrl-C reaches the program too, which decides when both end.
    let _ = ctrlc::set_handler(|| {});
    match command.status() {
        Ok(status) => process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// Does nothing: the processes of a run share their console.
pub fn own_process_group(_: &mut Command) {}

/// Does nothing: a process that trains with others does not run on Windows.
pub fn send_signal(_: u32, _: Signal) {}

/// Returns `None`: there are no signals.
pub fn ended_by_signal(_: ExitStatus) -> Option<EndSignal> {
    None
}

/// Calls `on_request` on a thread of its own at every request to stop this process.
pub fn listen(mut on_request: impl FnMut(StopRequest) + Send + 'static) -> io::Result<()> {
    // Ctrl-Break and a closing console call the same handler.
    ctrlc::set_handler(move || on_request(StopRequest::Interrupt)).map_err(io::Error::other)
}

/// Ends this process.
pub fn exit_at_once(code: i32) -> ! {
    process::exit(code)
}

/// Returns false: named pipes are not among the files of a folder.
pub fn is_pipe(_: fs::FileType) -> bool {
    false
}

/// Returns whether this process was started without standard output; not detected.
pub fn is_stdout_closed() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_and_names_that_would_change_are_refused() {
        for name in [
            "CON",
            "nul.csv",
            "Com1",
            "lpt9.tar.gz",
            "COM¹",
            "AUX .txt",
            "a:b",
            "x?.csv",
            "end.",
            "end ",
            "a\tb",
        ] {
            let error = check_name(OsStr::new(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidFilename, "{name}");
        }
        for name in ["console", "com10", "com1²", "com", ".hidden", "a.b", "ä ö.csv"] {
            check_name(OsStr::new(name)).unwrap();
        }
    }

    #[test]
    fn written_paths_have_slashes() {
        for (path, written) in [
            (r"photos\cat/1.png", "photos/cat/1.png"),
            (r"\\?\C:\photos\1.png", "C:/photos/1.png"),
            (r"\\?\UNC\server\share\1.png", "//server/share/1.png"),
            (r"\\server\share\1.png", "//server/share/1.png"),
        ] {
            assert_eq!(*path_bytes(OsStr::new(path)), *written.as_bytes(), "{path}");
        }
    }

    #[test]
    fn rename_waits_for_a_file_that_is_open_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        fs::write(&from, "new").unwrap();
        fs::write(&to, "old").unwrap();
        let names = [OsStr::new("from"), OsStr::new("to")];
        let renamed = || rename((folder.path(), &names[..1]), (folder.path(), &names[1..]));
        thread::scope(|scope| {
            let held = File::options().read(true).share_mode(SHARE_READ).open(&to).unwrap();
            let renaming = scope.spawn(renamed);
            thread::sleep(5 * RENAME_INTERVAL);
            drop(held);
            renaming.join().unwrap().unwrap();
        });
        assert_eq!(fs::read_to_string(&to).unwrap(), "new");
        fs::write(&from, "newer").unwrap();
        let _held = File::options().read(true).share_mode(SHARE_READ).open(&to).unwrap();
        let error = renamed().unwrap_err();
        assert!(error.to_string().contains("close the program"), "{error}");
    }
}
