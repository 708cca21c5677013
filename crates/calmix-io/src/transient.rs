//! Detects temporary disk errors, and computes the waits before retries: a file server that restarts is away for about a
//! minute.
//!
//! This module has no clock and does not sleep: [`BackOff`] returns the waiting times, and the caller waits. The bytes read
//! or written afterwards are the same, so timing never changes the result of a run.

use std::io::{self, ErrorKind};
use std::time::Duration;

/// Transient errors without an [`ErrorKind`], by number: EIO, ENFILE, EMFILE; on Linux also EREMOTEIO.
const TRANSIENT_ERRNOS: &[i32] = if cfg!(target_os = "linux") { &[5, 23, 24, 121] } else { &[5, 23, 24] };

/// Returns whether the same call may succeed later by itself, because the device or the network is at fault. A full disk, a
/// missing file and a missing permission need action by the user.
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
    by_kind || error.raw_os_error().is_some_and(|number| TRANSIENT_ERRNOS.contains(&number))
}

/// Returns whether the path is at fault: missing, of the wrong kind, or not permitted. The error persists until the user
/// gives another path or changes its permissions.
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

/// The waiting times between attempts, doubling up to five seconds each and 90 seconds in total.
///
/// ```
/// use calmix_io::transient::BackOff;
///
/// let mut back_off = BackOff::default();
/// let waits: Vec<f64> = back_off.by_ref().map(|wait| wait.as_secs_f64()).collect();
/// assert_eq!(waits[..4], [0.1, 0.2, 0.4, 0.8]);
/// assert_eq!(back_off.waited(), BackOff::MAX_TOTAL_WAIT);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackOff {
    waited: Duration,
    attempts: u32,
}

impl BackOff {
    /// The maximum sum of all waits: longer than a file server needs to restart.
    pub const MAX_TOTAL_WAIT: Duration = Duration::from_secs(90);
    /// The total wait after which the user is warned.
    pub const WARN_AFTER: Duration = Duration::from_secs(3);
    const FIRST_WAIT: Duration = Duration::from_millis(100);
    const MAX_WAIT: Duration = Duration::from_secs(5);

    /// Returns whether the user should be warned after `wait`, the last wait.
    pub fn should_warn(&self, wait: Duration) -> bool {
        (self.waited.saturating_sub(wait)..self.waited).contains(&Self::WARN_AFTER)
    }

    /// Returns the sum of the waits so far.
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

impl Iterator for BackOff {
    type Item = Duration;

    /// Returns the next wait; `None` when the total is reached.
    fn next(&mut self) -> Option<Duration> {
        let doubled = Self::FIRST_WAIT.saturating_mul(1 << self.attempts.min(16));
        let wait = doubled.min(Self::MAX_WAIT).min(Self::MAX_TOTAL_WAIT.saturating_sub(self.waited));
        self.waited += wait;
        self.attempts += 1;
        (!wait.is_zero()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_and_network_errors_are_transient() {
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
        // EIO, EMFILE, ESTALE, ENOTCONN (FUSE's error for a dead server), ETIMEDOUT; ENOENT, EACCES, ENOSPC, EROFS.
        assert_eq!([5, 24, 116, 107, 110].map(passes), [true; 5]);
        assert_eq!([2, 13, 28, 30].map(passes), [false; 4]);
    }

    #[test]
    fn waits_grow_and_end_after_ninety_seconds() {
        let waits: Vec<Duration> = BackOff::default().collect();
        assert!(waits.iter().sum::<Duration>() == BackOff::MAX_TOTAL_WAIT && waits.len() < 30, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= BackOff::MAX_WAIT));
        let mut back_off = BackOff::default();
        let warnings =
            waits.iter().filter(|_| back_off.next().is_some_and(|wait| back_off.should_warn(wait)));
        assert_eq!(warnings.count(), 1);
    }
}
