//! Fetches shards in background threads before they are needed.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// The number of shards to fetch at the same time.
const THREADS: usize = 2;

/// The queue of names, and the threads that fetch them. They end with the folder.
#[derive(Debug)]
pub(crate) struct Prefetcher {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<PrefetchState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PrefetchState {
    queue: VecDeque<String>,
    /// The names in the queue or being fetched.
    pending: HashSet<String>,
    is_closed: bool,
}

impl Prefetcher {
    /// Starts threads that call `fetch` with each name until it returns false.
    pub(crate) fn new(fetch: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let fetch = Arc::new(fetch);
        for _ in 0..THREADS {
            let shared = Arc::clone(&shared);
            let fetch = Arc::clone(&fetch);
            // Without a thread, shards are fetched when they are needed.
            let _ = thread::Builder::new().name("prefetch".into()).spawn(move || work(&shared, &*fetch));
        }
        Self { shared }
    }

    pub(crate) fn add(&self, names: Vec<String>) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            if state.pending.insert(name.clone()) {
                state.queue.push_back(name);
            }
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closed = true;
        self.shared.changed.notify_all();
    }
}

fn work(shared: &Shared, fetch: &impl Fn(&str) -> bool) {
    loop {
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let name = loop {
            if state.is_closed {
                return;
            }
            if let Some(name) = state.queue.pop_front() {
                break name;
            }
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        if !fetch(&name) {
            return;
        }
        shared.state.lock().unwrap_or_else(PoisonError::into_inner).pending.remove(&name);
    }
}
