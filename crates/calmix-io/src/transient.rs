//! Which errors of a disk pass by themselves, and how long to wait for that: a filer that restarts is away for a minute.
//!
//! No clock and no sleep here: [`BackOff`] says how long to wait, the caller waits. What is read or written afterwards is
//! what it would have been, so time never decides what a run learns.

use std::io::{self, ErrorKind};
use std::time::Duration;

/// Errors without a kind of their own, by their number: EIO, ENFILE, EMFILE; on Linux also EREMOTEIO.
const NUMBERS: &[i32] = if cfg!(target_os = "linux") { &[5, 23, 24, 121] } else { &[5, 23, 24] };

/// Whether the same call may succeed later, with nobody doing anything about it here: the device or the network is at
/// fault. A full disk, a missing file and a missing permission wait for a person.
pub fn is_transient(error: &io::Error) -> bool {
    let by_kind = matches!(
        error.kind(),
        ErrorKind::Interrupted
            | ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::StaleNetworkFileHandle
            | ErrorKind::ResourceBusy
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::NotConnected
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionRefused
    );
    by_kind || error.raw_os_error().is_some_and(|number| NUMBERS.contains(&number))
}

/// Whether the path is at fault: what is missing, of another kind, or not allowed there stays so until a person names
/// another path or changes its rights.
pub fn is_wrong_path(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename
    )
}

/// How long to wait before each further attempt: twice as long every time, up to five seconds, 90 seconds in all.
///
/// ```
/// use calmix_io::transient::BackOff;
///
/// let mut back_off = BackOff::default();
/// let waits: Vec<f64> = back_off.by_ref().map(|wait| wait.as_secs_f64()).collect();
/// assert_eq!(waits[..4], [0.1, 0.2, 0.4, 0.8]);
/// assert_eq!(back_off.waited(), BackOff::LONGEST);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackOff {
    waited: Duration,
    attempts: u32,
}

impl BackOff {
    /// The sum of all waits: longer than a filer needs to restart.
    pub const LONGEST: Duration = Duration::from_secs(90);
    /// After so long a person should hear of it; shorter waits are nothing to tell.
    pub const WORTH_TELLING: Duration = Duration::from_secs(3);
    const FIRST: Duration = Duration::from_millis(100);
    const EACH: Duration = Duration::from_secs(5);

    /// Whether `wait`, the last one, is the one after which a person should hear of it.
    pub fn is_worth_a_warning(&self, wait: Duration) -> bool {
        (self.waited.saturating_sub(wait)..self.waited).contains(&Self::WORTH_TELLING)
    }

    /// The sum of the waits so far.
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

impl Iterator for BackOff {
    type Item = Duration;

    /// The next wait; none when it is time to give up.
    fn next(&mut self) -> Option<Duration> {
        let doubled = Self::FIRST.saturating_mul(1 << self.attempts.min(16));
        let wait = doubled.min(Self::EACH).min(Self::LONGEST.saturating_sub(self.waited));
        self.waited += wait;
        self.attempts += 1;
        (!wait.is_zero()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_or_a_network_does_passes_and_what_a_person_must_change_does_not() {
        for kind in [ErrorKind::StaleNetworkFileHandle, ErrorKind::TimedOut, ErrorKind::NotConnected] {
            assert!(is_transient(&kind.into()), "{kind:?}");
        }
        for kind in [
            ErrorKind::StorageFull,
            ErrorKind::QuotaExceeded,
            ErrorKind::FileTooLarge,
            ErrorKind::ReadOnlyFilesystem,
            ErrorKind::NotFound,
            ErrorKind::PermissionDenied,
            ErrorKind::UnexpectedEof,
            ErrorKind::Other,
        ] {
            assert!(!is_transient(&kind.into()), "{kind:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_numbers_are_known() {
        let passes = |number| is_transient(&io::Error::from_raw_os_error(number));
        // EIO, EMFILE, ESTALE, ENOTCONN (what FUSE says of a server that died), ETIMEDOUT; ENOENT, EACCES, ENOSPC, EROFS.
        assert_eq!([5, 24, 116, 107, 110].map(passes), [true; 5]);
        assert_eq!([2, 13, 28, 30].map(passes), [false; 4]);
    }

    #[test]
    fn waits_grow_and_end_after_ninety_seconds() {
        let waits: Vec<Duration> = BackOff::default().collect();
        assert!(waits.iter().sum::<Duration>() == BackOff::LONGEST && waits.len() < 30, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= BackOff::EACH));
        let mut back_off = BackOff::default();
        let told =
            waits.iter().filter(|_| back_off.next().is_some_and(|wait| back_off.is_worth_a_warning(wait)));
        assert_eq!(told.count(), 1);
    }
}
