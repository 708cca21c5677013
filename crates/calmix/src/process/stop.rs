//! The signals by which users and schedulers end a program. At the first one a run saves its state and stops.
//!
//! | signal | who sends it | repeated |
//! |---|---|---|
//! | SIGINT | Ctrl-C | the process exits at once and saves nothing |
//! | SIGTERM | `kill`, `timeout`, Slurm, Kubernetes; often twice | ignored |
//! | SIGHUP | a terminal that closes; left alone where `nohup` ignores it | ignored |
//! | SIGUSR1 | Slurm's `--signal=USR1@120`, before the time limit | ignored |
//!
//! Preparing a dataset has no state to save, and stops at the first; nor has a rank that waits for the others to join. A head
//! has none either: its run stops by itself, or is ended a second later.
//! `predict` has its rows in its output: it stops at the first, and at any signal a second later it ends at once.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::error::exit::Exit;
use crate::terminal;

/// How often a thread checks for a signal.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long work that has nothing to save may take to end by itself after the first signal, and to remove what it wrote.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// A signal that follows another within this time is the same request: `timeout` sends SIGTERM to the process and to its group.
const REPEAT_WINDOW: Duration = Duration::from_secs(1);

/// Waits for what another thread sends; `None` if the command has to stop before. `what` names it.
pub(crate) fn receive<T>(receiver: &Receiver<T>, stop: &AtomicBool, what: &str) -> Result<Option<T>> {
    while !stop.load(Ordering::Relaxed) {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok(sent) => return Ok(Some(sent)),
            Err(RecvTimeoutError::Timeout) => {}
            // A panic, which was printed: what is incomplete must not look complete.
            Err(RecvTimeoutError::Disconnected) => bail!("{what} ended unexpectedly"),
        }
    }
    Ok(None)
}

/// Which signals have arrived.
#[derive(Debug)]
pub struct Stop {
    received: Arc<Received>,
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Received {
    any: AtomicBool,
    /// Any but Ctrl-C.
    term: AtomicBool,
    second_interrupt: AtomicBool,
    /// Whether a second Ctrl-C is left to the supervisor, which has processes to end.
    supervised: AtomicBool,
    /// Whether a second signal of any kind ends the process.
    ends_at_second: AtomicBool,
}

impl Stop {
    /// Starts to listen.
    pub fn listen() -> io::Result<Self> {
        let mut caught = vec![SIGINT, SIGTERM, SIGUSR1];
        if !is_ignored(SIGHUP) {
            caught.push(SIGHUP);
        }
        let mut signals = Signals::new(caught)?;
        let received = Arc::new(Received::default());
        let sets = Arc::clone(&received);
        // It prints nothing: a terminal that does not take a line must not keep it from the next signal.
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut interrupts = 0_u32;
            let mut first: Option<Instant> = None;
            for signal in signals.forever() {
                let since = first.get_or_insert_with(Instant::now).elapsed();
                if signal != SIGINT && since > REPEAT_WINDOW && sets.ends_at_second.load(Ordering::Relaxed) {
                    signal_hook::low_level::exit(Exit::Requeue.code().into());
                }
                if signal == SIGINT {
                    interrupts += 1;
                } else {
                    sets.term.store(true, Ordering::Relaxed);
                }
                sets.any.store(true, Ordering::Relaxed);
                if signal == SIGINT && interrupts > 1 {
                    sets.second_interrupt.store(true, Ordering::Relaxed);
                    if !sets.supervised.load(Ordering::Relaxed) {
                        // Without destructors: libtorch's threads are still at work.
                        signal_hook::low_level::exit(Exit::Unsaved.code().into());
                    }
                }
            }
        })?;
        Ok(Self { received, over: Arc::new(AtomicBool::new(false)), watcher: None })
    }

    /// As [`announced`](Self::announced), if this process may print.
    #[must_use]
    pub fn announced_if(self, prints: bool) -> Self {
        if prints { self.announced() } else { self }
    }

    /// From now on a message confirms the first signal, because a run stops only after its current step.
    #[must_use]
    pub fn announced(mut self) -> Self {
        let received = Arc::clone(&self.received);
        let done = Arc::clone(&self.over);
        self.watcher = Some(thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                if received.any.load(Ordering::Relaxed) {
                    let by_term = received.term.load(Ordering::Relaxed);
                    let again =
                        if by_term { "" } else { "; press Ctrl-C again to exit at once without saving" };
                    terminal::clear_line();
                    terminal::status(&format!("stopping and saving the run{again}"));
                    return;
                }
                thread::park_timeout(POLL_INTERVAL);
            }
        }));
        self
    }

    /// Runs `wait`, in which there is nothing to save, and ends the process at the first signal.
    pub fn ending_at_signal<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.ending_within(Duration::ZERO, || {}, wait)
    }

    /// Runs `work`, which looks at [`flag`](Self::flag) itself and has nothing to save. If it has not ended [`GRACE_PERIOD`]
    /// after the first signal, because a call of it cannot be interrupted, `before_exit` is called and the process ends.
    pub fn ending_soon<T>(&self, before_exit: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
        self.ending_within(GRACE_PERIOD, before_exit, work)
    }

    fn ending_within<T>(
        &self,
        grace: Duration,
        before_exit: impl FnOnce() + Send,
        work: impl FnOnce() -> T,
    ) -> T {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut received: Option<Instant> = None;
                while !is_over.load(Ordering::Relaxed) {
                    if self.received.any.load(Ordering::Relaxed) {
                        received.get_or_insert_with(Instant::now);
                    }
                    if received.is_some_and(|received| received.elapsed() >= grace) {
                        before_exit();
                        let exit = if self.is_by_term() { Exit::Requeue } else { Exit::Interrupted };
                        // Without destructors: what does not end, such as libtorch's rendezvous, ends with the process.
                        signal_hook::low_level::exit(exit.code().into());
                    }
                    thread::park_timeout(POLL_INTERVAL);
                }
            });
            let done = work();
            is_over.store(true, Ordering::Relaxed);
            watcher.thread().unpark();
            done
        })
    }

    /// Whether to stop.
    pub fn flag(&self) -> &AtomicBool {
        &self.received.any
    }

    /// Whether a signal other than Ctrl-C arrived.
    pub fn is_by_term(&self) -> bool {
        self.received.term.load(Ordering::Relaxed)
    }

    /// From now on any second signal ends this process: its output is resumable whenever it ends.
    pub fn end_at_second(&self) {
        self.received.ends_at_second.store(true, Ordering::Relaxed);
    }

    /// From now on a second Ctrl-C does not end this process, which looks for it by
    /// [`is_insisted_on`](Self::is_insisted_on).
    pub fn leave_second_to_supervisor(&self) {
        self.received.supervised.store(true, Ordering::Relaxed);
    }

    /// Whether Ctrl-C arrived twice.
    pub fn is_insisted_on(&self) -> bool {
        self.received.second_interrupt.load(Ordering::Relaxed)
    }

    /// Ends the announcements; returns how a stopped run exits.
    pub fn exit(self) -> Exit {
        // A process without a signal of its own stopped because another process had one.
        let is_interrupted = self.received.any.load(Ordering::Relaxed) && !self.is_by_term();
        self.over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
        if is_interrupted { Exit::Interrupted } else { Exit::Requeue }
    }
}

/// Removes a folder that a command removes at its end, where a signal ends the process before.
pub fn remove_scratch(folder: &Path) {
    // A folder that cannot be removed is left to the system's temporary files.
    let _ = std::fs::remove_dir_all(folder);
}

/// Whether this process was started with a signal ignored, as `nohup` does with SIGHUP: then a run continues without its
/// terminal. Known on Linux alone; elsewhere the run is saved and stops.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
