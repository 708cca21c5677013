//! Storage that does not answer: whoever reads waits for it, and the user hears of it once.

use std::fmt::{self, Debug, Display, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use calmix_io::transient::BackOff;

/// Takes what people should know at once, from any thread.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// After so long without a finished row, whatever the reason, people should hear of it.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// Whether the storage is away, as far as people were told.
#[derive(Default)]
pub(crate) struct Outage {
    warn: OnceLock<Warn>,
    told: AtomicBool,
}

impl Debug for Outage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outage").field("told", &self.told).finish_non_exhaustive()
    }
}

impl Outage {
    pub(crate) fn set_warn(&self, warn: Warn) {
        // The first one stays.
        let _ = self.warn.set(warn);
    }

    /// A read failed, and will be tried again.
    pub(crate) fn failed(&self, error: &dyn Display, back_off: &BackOff) {
        if back_off.waited() >= BackOff::WORTH_TELLING {
            self.tell(&format!("{error}; waiting for the storage, up to {} s", BackOff::LONGEST.as_secs()));
        }
    }

    /// No row was finished for a while.
    pub(crate) fn silent(&self, ids: &[u64], patience: Duration) {
        self.tell(&format!(
            "no sample was finished for {} s; in progress: {ids:?}; waiting for the storage, up to {} s",
            SILENCE.as_secs(),
            patience.as_secs()
        ));
    }

    /// Reads succeed again.
    pub(crate) fn over(&self) {
        if self.told.swap(false, Ordering::Relaxed) {
            self.pass_on("the storage is back");
        }
    }

    fn tell(&self, text: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            self.pass_on(text);
        }
    }

    fn pass_on(&self, text: &str) {
        if let Some(warn) = self.warn.get() {
            warn(text);
        }
    }
}
