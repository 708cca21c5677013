//! Waits for the storage of a dataset that is temporarily unavailable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use calmix_data::loader::Warn;
use calmix_io::transient::BackOff;

use crate::error::LifecycleError;

/// Opens the data of a run. Waits if the storage is temporarily unavailable, unless `stop` is true.
///
/// # Errors
/// What `open` returns, if waiting does not help.
pub fn open_when_available<T>(
    stop: &AtomicBool,
    warn: &Warn,
    open: impl Fn() -> Result<T, LifecycleError>,
) -> Result<T, LifecycleError> {
    let mut back_off = BackOff::default();
    loop {
        let error = match open() {
            Err(LifecycleError::Data(error)) if error.is_transient() => error,
            opened => return opened,
        };
        let wait = back_off.next().filter(|_| !stop.load(Ordering::Relaxed));
        let Some(wait) = wait else { return Err(error.into()) };
        if back_off.is_worth_a_warning(wait) {
            let longest = BackOff::LONGEST.as_secs();
            warn(&format!("{error}; waiting for the storage, up to {longest} s"));
        }
        thread::sleep(wait);
    }
}
