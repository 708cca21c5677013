//! What differs between operating systems, each behind a function with one meaning. No other file names one.
//!
//! | function | Unix | Windows |
//! |---|---|---|
//! | `open` and the calls beside it | relative to handles, so that no link is followed | every folder is checked before the call; links need a privilege there |
//! | `hold_scratch` | a lock | other processes cannot open the file for writing |
//! | `sync_folder` | makes a rename durable | does nothing: the file system keeps a journal of its names |
//! | `rename` | replaces an open file | waits a second for a program that has the file open, such as a virus scanner |
//! | [`owner`] | the user id | none: folders of a user are closed to others |
//! | [`replace_process`] | `exec` | runs the program and ends with its exit code |
//! | [`listen`] | signals | Ctrl-C and Ctrl-Break |
//! | [`limit_this_process`] | `setrlimit` | no limits |

mod arguments;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs::File;
use std::io;

#[cfg(unix)]
use unix as current;
#[cfg(windows)]
use windows as current;

pub(crate) use arguments::{Access, FolderOf};
pub use arguments::{EndSignal, ProcessLimits, Signal, StopRequest};
pub use current::{
    CREATE_FOLDERS, READ_PERMISSION_HINT, ended_by_signal, exit_at_once, is_on_same_device, is_pipe,
    is_stdout_closed, limit_this_process, link_count, listen, max_open_files, own_process_group, owner,
    path_from_bytes, raise_open_files, read_at, replace_process, send_signal, untrusted_because, user,
};
pub(crate) use current::{
    check_name, create_folder, entries, hard_link, has_no_locks, hold_scratch, host_name, is_link_refused,
    is_locked_by, is_same_file, open, path_bytes, remove_empty_folder, remove_file, rename, stored_bytes,
    sync_folder, why_impossible,
};

/// Reads all of `bytes` from a position.
///
/// # Errors
/// If the file ends before them.
pub fn read_exact_at(file: &File, mut bytes: &mut [u8], mut position: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match read_at(file, bytes, position) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                bytes = bytes.split_at_mut(count).1;
                position = position.checked_add(count as u64).ok_or(io::ErrorKind::InvalidInput)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
