//! Storage that does not answer: workers wait for it, and people hear of it once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use calmix_core::transient::BackOff;

use super::error::LoadError;

/// Takes what people should know at once, from any thread.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// After so long without a finished row, whatever the reason, people should hear of it.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// Whether the storage is away, as far as people were told.
#[derive(Default)]
pub(super) struct Outage {
    warn: OnceLock<Warn>,
    told: AtomicBool,
}

impl Outage {
    pub(super) fn set_warn(&self, warn: Warn) {
        // The first one stays.
        let _ = self.warn.set(warn);
    }

    /// A row failed, and will be tried again.
    pub(super) fn failed(&self, error: &LoadError, back_off: &BackOff) {
        if back_off.waited() >= BackOff::WORTH_TELLING {
            self.tell(&format!("{error}; waiting for the storage, up to {} s", BackOff::LONGEST.as_secs()));
        }
    }

    /// No row was finished for a while.
    pub(super) fn silent(&self, ids: &[u64], patience: Duration) {
        self.tell(&format!(
            "no sample was finished for {} s; in progress: {ids:?}; waiting for the storage, up to {} s",
            SILENCE.as_secs(),
            patience.as_secs()
        ));
    }

    /// Rows are finished again.
    pub(super) fn over(&self) {
        if self.told.swap(false, Ordering::Relaxed) {
            self.pass_on("the storage is back, and the run goes on");
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
