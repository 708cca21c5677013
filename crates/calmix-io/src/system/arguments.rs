//! What the calls of every system take and return.

use std::io;

/// What a file or a folder is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// To read a file.
    Read,
    /// To write to an existing file.
    Write,
    /// To read and write in place; the file is created if it is missing.
    ReadWrite,
    /// To append; the file is created if it is missing.
    Append,
    /// To read and write a file that must not exist yet.
    New,
}

/// Who may enter a new folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderOf {
    /// Whoever the umask lets in.
    Everybody,
    /// Only this user.
    ThisUser,
}

/// A request to stop this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequest {
    /// Ctrl-C: SIGINT; on Windows every request, since they cannot be told apart.
    Interrupt,
    /// A scheduler or a closed terminal: SIGTERM, SIGUSR1, SIGHUP.
    Terminate,
}

/// A signal to another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL: the process ends at once.
    Kill,
}

/// The limits of a process that runs untrusted content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    pub cpu_seconds: u64,
    pub memory_bytes: u64,
}

/// Why a process ended by itself or was killed, if a signal ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSignal {
    /// It was killed, perhaps because it used more time than its limit.
    KilledOrOverTime(i32),
    /// It crashed, or was ended in another way.
    Other(i32),
}

/// Returns the error for a path without a name.
pub(super) fn no_name() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}
