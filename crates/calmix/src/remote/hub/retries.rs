//! Further attempts after a failure that may pass.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::failure::Failure;
use crate::error::sentence;
use crate::terminal::status;

/// Further attempts that fail in a row before the command does.
const MAX_RETRIES: u32 = 4;

/// The time before the first further attempt; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Counts the attempts that failed in a row.
#[derive(Debug, Default)]
pub(super) struct Retries {
    failed: u32,
}

impl Retries {
    /// Begins to count anew, because an attempt has got a good deal further.
    pub(super) fn reset(&mut self) {
        self.failed = 0;
    }

    /// Waits for the next attempt, or returns the error of the last one.
    pub(super) fn wait_after(&mut self, failure: Failure) -> Result<()> {
        if !failure.is_passing || self.failed == MAX_RETRIES {
            return Err(failure.error);
        }
        status(&format!("{}; trying again", sentence(&failure.error)));
        thread::sleep(FIRST_WAIT * 2_u32.pow(self.failed));
        self.failed += 1;
        Ok(())
    }
}
