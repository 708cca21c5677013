//! Waiting for unavailable storage, with one warning per outage.

use std::fmt::{self, Debug, Display, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use calmix_io::transient::BackOff;

/// Receives warnings for the user, from any thread.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// How long no row may finish, for any reason, before the user is warned.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// Whether the user has been warned that the storage is unavailable.
#[derive(Default)]
pub(crate) struct Outage {
    warn: OnceLock<Warn>,
    warned: AtomicBool,
}

impl Debug for Outage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outage").field("warned", &self.warned).finish_non_exhaustive()
    }
}

impl Outage {
    pub(crate) fn set_warn(&self, warn: Warn) {
        // Only the first callback is kept.
        let _ = self.warn.set(warn);
    }

    /// Warns of a failed read that will be retried.
    pub(crate) fn failed(&self, error: &dyn Display, back_off: &BackOff) {
        if back_off.waited() >= BackOff::WARN_AFTER {
            self.warn_once(&format!(
                "{error}; waiting for the storage, up to {} s",
                BackOff::MAX_TOTAL_WAIT.as_secs()
            ));
        }
    }

    /// Warns that no row has finished for a while.
    pub(crate) fn silent(&self, ids: &[u64], patience: Duration) {
        self.warn_once(&format!(
            "no sample was loaded for {} s; in progress: {ids:?}; waiting for the storage, up to {} s",
            SILENCE.as_secs(),
            patience.as_secs()
        ));
    }

    /// Ends an outage: reads succeed again.
    pub(crate) fn recovered(&self) {
        if self.warned.swap(false, Ordering::Relaxed) {
            self.send("the storage is available again");
        }
    }

    fn warn_once(&self, text: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            self.send(text);
        }
    }

    fn send(&self, text: &str) {
        if let Some(warn) = self.warn.get() {
            warn(text);
        }
    }
}
