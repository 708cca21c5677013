//! Ctrl-C and SIGTERM: the first one asks a run to keep its state and stop, the second one ends it at once. What is only
//! being prepared has no state to keep, and ends at the first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use calmix::train::launch::Place;

use crate::exit::Exit;
use crate::terminal;

/// How long a person waits at most to see that a signal has arrived.
pub(crate) const SOON: Duration = Duration::from_millis(100);

/// What signals ask for.
#[derive(Debug)]
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
    by_term: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Stop {
    /// From now on signals are obeyed this way.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn listen() -> io::Result<Self> {
        let [asked, by_term, over] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the signal that sets the flag does not yet see it.
            register_conditional_shutdown(signal, Exit::Interrupted.code().into(), Arc::clone(&asked))?;
            register(signal, Arc::clone(&asked))?;
        }
        register(SIGTERM, Arc::clone(&by_term))?;
        Ok(Self { asked, by_term, over, watcher: None })
    }

    /// As [`announced`](Self::announced), in a process that does the telling.
    pub(crate) fn announced_by(self, place: Option<&Place>) -> Self {
        if place.is_none_or(|place| place.rank == 0) { self.announced() } else { self }
    }

    /// From now on a run is trained, which stops at the end of a step: a signal is answered with a word.
    pub(crate) fn announced(mut self) -> Self {
        let (seen, done) = (Arc::clone(&self.asked), Arc::clone(&self.over));
        // A step is short but an evaluation is not: without a word, people press Ctrl-C again.
        self.watcher = Some(thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                if seen.load(Ordering::Relaxed) {
                    terminal::clear_line();
                    terminal::tell("stopping at the end of this step; once more to stop at once");
                    return;
                }
                thread::park_timeout(SOON);
            }
        }));
        self
    }

    /// Whether to stop.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.asked
    }

    /// Whether it is SIGTERM that asks.
    pub(crate) fn is_by_term(&self) -> bool {
        self.by_term.load(Ordering::Relaxed)
    }

    /// The run has stopped: nothing more is said, and the command ends like this.
    pub(crate) fn exit(self) -> Exit {
        // Whoever was not asked itself stops with another process that was.
        let is_interrupted = self.asked.load(Ordering::Relaxed) && !self.is_by_term();
        self.over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher {
            watcher.thread().unpark();
            let _ = watcher.join();
        }
        if is_interrupted { Exit::Interrupted } else { Exit::Requeue }
    }
}
