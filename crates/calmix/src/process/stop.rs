//! The signals with which users and schedulers stop a program. On the first one, a run saves its state and stops.
//!
//! | signal | sender | repeated |
//! |---|---|---|
//! | SIGINT | Ctrl-C | the process exits at once and saves nothing |
//! | SIGTERM | `kill`, `timeout`, Slurm, Kubernetes; often twice | ignored |
//! | SIGHUP | a terminal that closes; left alone where `nohup` ignores it | ignored |
//! | SIGUSR1 | Slurm's `--signal=USR1@120`, before the time limit | ignored |
//!
//! Preparing a dataset has no state to save and stops on the first signal, as does a rank that waits for the others to join. A
//! head has no state either: its run stops by itself, or is ended a second later. `predict` has its rows in its output: it stops
//! on the first signal, and exits at once on any signal a second later.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use calmix_io::system::{self, StopRequest, exit_at_once};

use crate::error::exit::Exit;
use crate::terminal;

/// The time between two checks for a signal.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The time after the first signal in which work with nothing to save may end by itself and remove its files.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// The time within which a further signal is the same request: `timeout` sends SIGTERM to the process and to its group.
const REPEAT_WINDOW: Duration = Duration::from_secs(1);

/// Receives a value from another thread; `None` if the command has to stop first. `what` names the thread's work.
pub(crate) fn receive<T>(receiver: &Receiver<T>, stop: &AtomicBool, what: &str) -> Result<Option<T>> {
    while !stop.load(Ordering::Relaxed) {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok(sent) => return Ok(Some(sent)),
            Err(RecvTimeoutError::Timeout) => {}
            // The other thread panicked, which was printed. Fail, so that an incomplete result does not look complete.
            Err(RecvTimeoutError::Disconnected) => bail!("{what} ended unexpectedly"),
        }
    }
    Ok(None)
}

/// The signals that have arrived.
#[derive(Debug)]
pub struct Stop {
    received: Arc<Received>,
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Received {
    any: AtomicBool,
    /// Any signal but Ctrl-C.
    term: AtomicBool,
    second_interrupt: AtomicBool,
    /// Whether a second Ctrl-C is handled by the supervisor, which has to end its processes.
    supervised: AtomicBool,
    /// Whether a second signal of any kind ends the process.
    ends_at_second: AtomicBool,
}

impl Stop {
    /// Starts to listen for signals.
    pub fn listen() -> io::Result<Self> {
        let received = Arc::new(Received::default());
        let sets = Arc::clone(&received);
        let mut interrupts = 0_u32;
        let mut first: Option<Instant> = None;
        // The thread that is called prints nothing, so that a blocked terminal cannot keep it from the next signal.
        system::listen(move |request| {
            let since = first.get_or_insert_with(Instant::now).elapsed();
            let is_interrupt = request == StopRequest::Interrupt;
            if !is_interrupt && since > REPEAT_WINDOW && sets.ends_at_second.load(Ordering::Relaxed) {
                exit_at_once(Exit::Requeue.code().into());
            }
            if is_interrupt {
                interrupts += 1;
            } else {
                sets.term.store(true, Ordering::Relaxed);
            }
            sets.any.store(true, Ordering::Relaxed);
            if is_interrupt && interrupts > 1 {
                sets.second_interrupt.store(true, Ordering::Relaxed);
                if !sets.supervised.load(Ordering::Relaxed) {
                    // Skip destructors, because libtorch's threads are still working.
                    exit_at_once(Exit::Unsaved.code().into());
                }
            }
        })?;
        Ok(Self { received, over: Arc::new(AtomicBool::new(false)), watcher: None })
    }

    /// Calls [`announced`](Self::announced) if this process may print.
    #[must_use]
    pub fn announced_if(self, prints: bool) -> Self {
        if prints { self.announced() } else { self }
    }

    /// Confirms the first signal with a message from now on, because a run stops only after its current step.
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

    /// Runs `wait`, which has nothing to save, and ends the process on the first signal.
    pub fn ending_at_signal<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.ending_within(Duration::ZERO, || {}, wait)
    }

    /// Runs `work`, which checks [`flag`](Self::flag) itself and has nothing to save. If it is still running [`GRACE_PERIOD`]
    /// after the first signal, in a call that cannot be interrupted, calls `before_exit` and ends the process.
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
                        // Skip destructors: some calls, such as libtorch's rendezvous, never return.
                        exit_at_once(exit.code().into());
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

    /// Returns the flag that is set when the command has to stop.
    pub fn flag(&self) -> &AtomicBool {
        &self.received.any
    }

    /// Returns whether a signal other than Ctrl-C arrived.
    pub fn is_by_term(&self) -> bool {
        self.received.term.load(Ordering::Relaxed)
    }

    /// Ends this process on any second signal from now on: its output can be resumed at any point.
    pub fn end_at_second(&self) {
        self.received.ends_at_second.store(true, Ordering::Relaxed);
    }

    /// Leaves a second Ctrl-C to the supervisor from now on, which checks [`is_insisted_on`](Self::is_insisted_on).
    pub fn leave_second_to_supervisor(&self) {
        self.received.supervised.store(true, Ordering::Relaxed);
    }

    /// Returns whether Ctrl-C arrived twice.
    pub fn is_insisted_on(&self) -> bool {
        self.received.second_interrupt.load(Ordering::Relaxed)
    }

    /// Ends the announcements; returns the exit of a stopped run.
    pub fn exit(self) -> Exit {
        // Without its own signal, this process stopped because another process received one.
        let is_interrupted = self.received.any.load(Ordering::Relaxed) && !self.is_by_term();
        self.over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
        if is_interrupted { Exit::Interrupted } else { Exit::Requeue }
    }
}

/// Removes a command's scratch folder before a signal ends the process.
pub fn remove_scratch(folder: &Path) {
    // If the folder cannot be removed, the system's cleaning of temporary files will do it.
    let _ = std::fs::remove_dir_all(folder);
}
