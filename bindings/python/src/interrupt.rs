//! Long work that Ctrl-C ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often the interpreter is asked for a signal.
const ASKED_EVERY: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own without the interpreter, and sets its argument when Python receives a signal.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let here = thread::current();
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            let done = work(&stop);
            here.unpark();
            done
        });
        let mut signal = Ok(());
        while !working.is_finished() {
            py.detach(|| thread::park_timeout(ASKED_EVERY));
            if signal.is_ok() {
                signal = py.check_signals();
                stop.store(signal.is_err(), Ordering::Relaxed);
            }
        }
        let done = working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        signal.map(|()| done)
    })
}
