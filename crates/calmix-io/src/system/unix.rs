//! Unix: calls relative to handles, permissions, signals.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::{fs, thread};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fcntl_getfl, fstat, stat};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal as UnixSignal, geteuid, getrlimit, kill_process, setrlimit,
};
use rustix::system::uname;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use super::arguments::{Access, EndSignal, FolderOf, ProcessLimits, Signal, StopRequest, no_name};

/// The hint for a file or folder without read permission.
pub const READ_PERMISSION_HINT: &str =
    "give yourself read permission (chmod u+r, or u+rx for a folder), or move it elsewhere";
/// The command that creates a folder and those above it.
pub const CREATE_FOLDERS: &str = "mkdir -p";

/// Opens the file with these names below `root`. Links are followed up to the root, but not below it.
pub(crate) fn open(root: &Path, names: &[&OsStr], access: Access) -> io::Result<File> {
    let flags = match access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
        Access::ReadWrite => OFlags::RDWR | OFlags::CREATE,
        Access::Append => OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
        Access::New => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
    };
    // NONBLOCK avoids waiting for the other end of a pipe; it has no effect on a regular file.
    Ok(open_with(root, names, flags | OFlags::NONBLOCK)?.into())
}

pub(crate) fn create_folder(root: &Path, names: &[&OsStr], of: FolderOf) -> io::Result<()> {
    let (folder, name) = parent(root, names)?;
    let mode = match of {
        FolderOf::Everybody => 0o777,
        FolderOf::ThisUser => 0o700,
    };
    Ok(rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode))?)
}

/// Renames a file or folder, replacing the target.
pub(crate) fn rename(from: (&Path, &[&OsStr]), to: (&Path, &[&OsStr])) -> io::Result<()> {
    let (folder, name) = parent(from.0, from.1)?;
    let (new_folder, new_name) = parent(to.0, to.1)?;
    Ok(rustix::fs::renameat(folder, name, new_folder, new_name)?)
}

/// Creates a hard link to the file `from`.
pub(crate) fn hard_link(from: &Path, root: &Path, names: &[&OsStr]) -> io::Result<()> {
    let (folder, name) = parent(root, names)?;
    Ok(rustix::fs::linkat(CWD, from, folder, name, AtFlags::empty())?)
}

/// Removes a file, or a link rather than its target.
pub(crate) fn remove_file(root: &Path, names: &[&OsStr]) -> io::Result<()> {
    let (folder, name) = parent(root, names)?;
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
}

pub(crate) fn remove_empty_folder(root: &Path, names: &[&OsStr]) -> io::Result<()> {
    let (folder, name) = parent(root, names)?;
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// Lists the names in a folder.
pub(crate) fn entries(root: &Path, names: &[&OsStr]) -> io::Result<Vec<OsString>> {
    let folder = open_with(root, names, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            found.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(found)
}

/// Synchronises a folder: returns when its entries are on disk.
pub(crate) fn sync_folder(root: &Path, names: &[&OsStr]) -> io::Result<()> {
    File::from(open_with(root, names, OFlags::RDONLY | OFlags::DIRECTORY)?).sync_all()
}

/// The permissions of new files, before the umask.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// The flags for opening a folder as the base of another path; on Linux, this does not need permission to list it.
#[cfg(target_os = "linux")]
const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PATH_ONLY: OFlags = OFlags::RDONLY;

/// Returns a handle of the parent folder, and the name in it.
fn parent<'a>(root: &Path, names: &[&'a OsStr]) -> io::Result<(OwnedFd, &'a OsStr)> {
    let (name, folders) = names.split_last().ok_or_else(no_name)?;
    Ok((open_with(root, folders, PATH_ONLY | OFlags::DIRECTORY)?, name))
}

fn open_with(root: &Path, names: &[&OsStr], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    if names.is_empty() {
        return Ok(rustix::fs::openat(CWD, or_current_folder(root), flags, MODE)?);
    }
    let flags = flags | OFlags::NOFOLLOW;
    let root = open_root(root)?;
    match open_beneath(&root, names, flags) {
        // Older kernels lack the call, and sandboxes refuse it.
        Err(Errno::NOSYS | Errno::PERM) => Ok(open_by_name(root, names, flags)?),
        opened => Ok(opened?),
    }
}

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

/// Accepts any name.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) fn check_name(_: &OsStr) -> io::Result<()> {
    Ok(())
}

/// Returns `None`: a file can have any name.
pub(crate) fn why_impossible(_: &OsStr) -> Option<&'static str> {
    None
}

/// Returns whether a path was refused because of a link in it.
pub(crate) fn is_link_refused(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Returns whether a lock was refused because the file system has none.
pub(crate) fn has_no_locks(error: &io::Error) -> bool {
    let is_no_lock_errno = Errno::from_io_error(error).is_some_and(|number| {
        [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOTSUP, Errno::NOSYS].contains(&number)
    });
    is_no_lock_errno || error.kind() == io::ErrorKind::Unsupported
}

/// Returns whether the kernel lists a lock of this process on a file; false on systems without such a list.
pub(crate) fn is_locked_by(file: &File, process: &str) -> bool {
    let Ok(found) = file.metadata() else { return false };
    let inode = found.ino().to_string();
    // `1: FLOCK  ADVISORY  WRITE 4711 08:01:5678 0 EOF`; the device is left out, since some file systems have several.
    let is_it = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next() == Some("FLOCK")
            && fields.nth(2) == Some(process)
            && fields.next().and_then(|place| place.rsplit(':').next()) == Some(&*inode)
    };
    fs::read_to_string("/proc/locks").is_ok_and(|list| list.lines().any(is_it))
}

/// Marks a scratch file as being written until it is closed.
///
/// # Errors
/// If another process has just opened it to remove it.
pub(crate) fn hold_scratch(file: &File) -> Result<(), TryLockError> {
    file.try_lock()
}

/// Returns whether a path names this open file.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let found = fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
    let held = file.metadata().map(|held| (held.dev(), held.ino()));
    matches!((found, held), (Ok(found), Ok(held)) if found == held)
}

/// Returns the space that a file takes up on disk.
pub(crate) fn stored_bytes(found: &Metadata) -> u64 {
    // `blocks` counts units of 512 bytes on every file system.
    found.blocks().saturating_mul(512)
}

/// Returns the number of names of an open file; 0 if it was removed.
pub fn link_count(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.nlink())
}

/// Reads some bytes from a position, whatever the file's own position is.
pub fn read_at(file: &File, bytes: &mut [u8], position: u64) -> io::Result<usize> {
    file.read_at(bytes, position)
}

/// Returns the bytes of a path as `calmix predict` writes it.
pub(crate) fn path_bytes(path: &OsStr) -> Cow<'_, [u8]> {
    path.as_bytes().into()
}

/// Returns a path that was written as bytes.
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// Returns whether two files are on one device.
pub fn is_on_same_device(one: &Path, other: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
    device(one).is_some() && device(one) == device(other)
}

/// Returns the user id of this process; `None` on systems without one.
pub fn user() -> Option<u32> {
    Some(geteuid().as_raw())
}

/// Returns the user id of a file's owner; `None` on systems without one.
pub fn owner(found: &Metadata) -> Option<u32> {
    Some(found.uid())
}

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Returns why another user may have changed a file or the folders above it, if one may. `depth` is 0 for the file.
pub fn untrusted_because(found: &Metadata, depth: usize) -> Option<&'static str> {
    let trusted = [geteuid().as_raw(), 0];
    if !trusted.contains(&found.uid()) {
        return Some("belongs to another user");
    }
    let mode = found.permissions().mode();
    // The group of root and the user's private group, which has the user's number, do not count.
    let is_private = trusted.contains(&found.gid());
    let is_writable_by_others = mode & OTHERS_WRITE != 0 || (mode & GROUP_WRITES != 0 && !is_private);
    // In a sticky folder such as /tmp, users cannot replace each other's folders, but all may add files. So it may be above the
    // folder of the file, but not be that folder itself.
    let is_guarded = depth >= 2 && mode & STICKY != 0;
    (is_writable_by_others && !is_guarded).then_some("can be written by other users")
}

pub(crate) fn host_name() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Raises the limit of open files as far as the system allows. By default it is 1,024 on most systems, which some 200 processes
/// reach, since each has a connection to every other one, as does a dataset of a thousand files that stay open. If that is too little, opening a file fails with its own error.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // macOS refuses more than its kernel allows, even below its own limit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Returns the maximum number of open files; `None` if unlimited.
pub fn max_open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Limits the time and the memory of this process, and turns off its core file. Lower limits of the system stay.
pub fn limit_this_process(limits: ProcessLimits) -> io::Result<()> {
    let set = |what: Resource, limit: u64| {
        let limit = getrlimit(what).maximum.map_or(limit, |maximum| maximum.min(limit));
        setrlimit(what, Rlimit { current: Some(limit), maximum: Some(limit) })
    };
    set(Resource::Cpu, limits.cpu_seconds)?;
    set(Resource::As, limits.memory_bytes)?;
    Ok(set(Resource::Core, 0)?)
}

/// Replaces this process by a program; returns only if that fails.
pub fn replace_process(command: &mut Command) -> io::Error {
    command.exec()
}

/// Starts a program in a process group of its own, which the terminal's Ctrl-C does not reach.
pub fn own_process_group(command: &mut Command) {
    command.process_group(0);
}

/// Sends a signal to a process. Fails silently if it has just ended.
pub fn send_signal(process: u32, signal: Signal) {
    let signal = match signal {
        Signal::Interrupt => UnixSignal::INT,
        Signal::Terminate => UnixSignal::TERM,
        Signal::Kill => UnixSignal::KILL,
    };
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the signal that ended a process, if one did.
pub fn ended_by_signal(status: ExitStatus) -> Option<EndSignal> {
    let signal = status.signal()?;
    let is_kill = [UnixSignal::KILL, UnixSignal::XCPU].map(UnixSignal::as_raw).contains(&signal);
    Some(if is_kill { EndSignal::KilledOrOverTime(signal) } else { EndSignal::Other(signal) })
}

/// Calls `on_request` on a thread of its own at every request to stop this process.
pub fn listen(mut on_request: impl FnMut(StopRequest) + Send + 'static) -> io::Result<()> {
    let mut caught = vec![SIGINT, SIGTERM, SIGUSR1];
    if !is_ignored(SIGHUP) {
        caught.push(SIGHUP);
    }
    let mut signals = Signals::new(caught)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            on_request(if signal == SIGINT { StopRequest::Interrupt } else { StopRequest::Terminate });
        }
    })?;
    Ok(())
}

/// Returns whether this process was started with a signal ignored, as `nohup` does with SIGHUP: a run then continues without its
/// terminal. Detected on Linux only; elsewhere the run saves its state and stops.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Ends this process without destructors: threads may be in calls that never return.
pub fn exit_at_once(code: i32) -> ! {
    signal_hook::low_level::exit(code)
}

/// Returns whether a file is a named pipe.
pub fn is_pipe(kind: fs::FileType) -> bool {
    kind.is_fifo()
}

/// Returns whether this process was started without standard output. The standard library then opens `/dev/null` for reading and
/// writing (`> /dev/null` opens it for writing only), and output is lost without an error.
pub fn is_stdout_closed() -> bool {
    let out = io::stdout();
    let is_null = || {
        let found = fstat(&out).ok()?;
        let null = stat("/dev/null").ok()?;
        Some(found.st_rdev == null.st_rdev && FileType::from_raw_mode(found.st_mode).is_char_device())
    };
    let is_read = fcntl_getfl(&out).is_ok_and(|flags| flags.contains(OFlags::RDWR));
    is_read && is_null().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// As on a kernel without `openat2`: `folder/inner/file` is refused after `inner` was replaced by a link.
    #[test]
    fn names_opened_one_by_one_follow_no_link() {
        let temp = tempfile::tempdir().unwrap();
        let [outside, folder] = ["outside", "folder"].map(|name| temp.path().join(name));
        fs::create_dir(&outside).unwrap();
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::write(outside.join("file"), "precious").unwrap();
        fs::write(folder.join("inner/file"), "own").unwrap();
        let by_name = |names: &[&str], flags| {
            let names: Vec<&OsStr> = names.iter().map(OsStr::new).collect();
            open_by_name(open_root(&folder).unwrap(), &names, flags | OFlags::NOFOLLOW)
        };
        by_name(&["inner", "file"], OFlags::RDONLY).unwrap();
        fs::rename(folder.join("inner"), folder.join("before")).unwrap();
        symlink(&outside, folder.join("inner")).unwrap();
        symlink(outside.join("file"), folder.join("link")).unwrap();
        for flags in [OFlags::RDONLY, OFlags::RDWR | OFlags::CREATE] {
            for names in [&["inner", "file"][..], &["inner", "new"], &["link"]] {
                by_name(names, flags).unwrap_err();
            }
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn limit_of_open_files_is_raised_to_what_the_system_allows() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum }).expect("a lower limit");
        assert_eq!(max_open_files(), Some(256));
        raise_open_files();
        assert_eq!(max_open_files(), maximum);
    }
}
