//! Ctrl-C and SIGTERM: at the first one a run saves its state and stops, at the second one the process exits immediately.
//! Preparing a dataset has no state to save, and stops at the first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use calmix::train::launch::LaunchInfo;

use crate::exit::Exit;
use crate::terminal;

/// How often a thread looks for a signal.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Which signals have arrived.
#[derive(Debug)]
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
    by_term: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Stop {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn listen() -> io::Result<Self> {
        let [asked, by_term, over] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the signal that sets the flag does not see it yet.
            register_conditional_shutdown(signal, Exit::Interrupted.code().into(), Arc::clone(&asked))?;
            register(signal, Arc::clone(&asked))?;
        }
        register(SIGTERM, Arc::clone(&by_term))?;
        Ok(Self { asked, by_term, over, watcher: None })
    }

    /// As [`announced`](Self::announced) on rank 0; the other ranks print nothing.
    pub(crate) fn announced_by_first(self, launch: Option<&LaunchInfo>) -> Self {
        if launch.is_none_or(|launch| launch.rank == 0) { self.announced() } else { self }
    }

    /// From now on a message confirms the first signal, because a run stops only after its current step.
    pub(crate) fn announced(mut self) -> Self {
        let (seen, done) = (Arc::clone(&self.asked), Arc::clone(&self.over));
        // A step is short but an evaluation is not: without a message, people press Ctrl-C again.
        self.watcher = Some(thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                if seen.load(Ordering::Relaxed) {
                    terminal::clear_line();
                    terminal::status("stopping after this step; press Ctrl-C again to exit immediately");
                    return;
                }
                thread::park_timeout(POLL_INTERVAL);
            }
        }));
        self
    }

    /// Whether to stop.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.asked
    }

    /// Whether the signal is SIGTERM.
    pub(crate) fn is_by_term(&self) -> bool {
        self.by_term.load(Ordering::Relaxed)
    }

    /// Ends the announcements; returns how a stopped run exits.
    pub(crate) fn exit(self) -> Exit {
        // A process without a signal of its own stopped because another process had one.
        let is_interrupted = self.asked.load(Ordering::Relaxed) && !self.is_by_term();
        self.over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
        if is_interrupted { Exit::Interrupted } else { Exit::Requeue }
    }
}
