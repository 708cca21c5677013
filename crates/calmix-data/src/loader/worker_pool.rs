//! Worker threads that make batches, and their shared state.
//!
//! A slot holds a batch in progress. A worker claims a few rows of the newest slot, makes them in its own buffer and copies
//! them into the batch under the slot's lock. The pool delivers the first slot when it is complete.

#[cfg(all(test, shuttle))]
mod interleavings;
mod state;
mod threads;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use calmix_io::transient::BackOff;

use super::batch::{BatchPool, PooledBatch};
use super::corrupt::Tally;
use super::workers::{Counters, Workers};
use crate::error::DataError;
use crate::outage::{Outage, SILENCE, Warn};
use state::{PoolState, Task};
use threads::{Builder, Condvar, JoinHandle, Mutex, MutexGuard};

/// The work of the pool: making batches. Each row is a pure function of the step and the row number.
pub(super) trait Job: Send + Sync + 'static {
    /// The batch to deliver.
    type Batch: Default + Send + 'static;
    /// A finished row without its pixels.
    type Made;
    /// The state that a worker keeps between rows.
    type WorkerState: Send + 'static;

    fn steps(&self) -> Range<u64>;
    fn rows(&self, step: u64) -> usize;
    /// Returns the maximum number of bytes of a row's views.
    fn bytes(&self) -> usize;
    fn worker_state(&self) -> Self::WorkerState;
    /// Prepares `batch`, which may hold an earlier step, for the rows of `step`.
    fn open(&self, step: u64, batch: &mut Self::Batch);
    /// Makes the row at `(step, row)`; stores the id of the current sample in `current`.
    fn make(
        &self,
        place: (u64, usize),
        local: &mut Self::WorkerState,
        current: &AtomicU64,
        pixels: &mut [u8],
    ) -> Result<Self::Made, DataError>;
    fn store(&self, row: usize, made: Self::Made, pixels: &[u8], batch: &mut Self::Batch);
    /// Adds a complete batch to the tally, and returns its number of images.
    fn count(&self, batch: &Self::Batch, tally: &mut Tally) -> Result<usize, DataError>;
}

/// Rows that a worker claims at a time: enough to keep locking cheap, few enough to share a batch among all workers.
const MAX_CLAIMED_ROWS: usize = 8;

/// The size of a worker's buffer, in bytes, unless a single row is larger: of large rows it claims fewer.
const BUFFER_BYTES: usize = 8 << 20;

/// Returns the number of rows of this length in bytes that a worker claims at a time.
fn rows_at_once(bytes: usize) -> usize {
    (BUFFER_BYTES / bytes.max(1)).clamp(1, MAX_CLAIMED_ROWS)
}

/// The maximum size of a batch: 64 GiB.
const MAX_BATCH_BYTES: u128 = 1 << 36;

/// Checks that a batch of `rows` rows and the buffer of a worker stay below the limit.
pub(super) fn check_size(rows: u64, bytes: usize) -> Result<(), DataError> {
    let fits = u128::from(rows.max(MAX_CLAIMED_ROWS as u64)) * bytes as u128 <= MAX_BATCH_BYTES;
    fits.then_some(()).ok_or(DataError::TooLarge { rows, bytes })
}

/// The interval at which a waiting consumer checks for a stop request.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long dropping a pool waits for workers to finish their samples; one that hangs is left behind.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Marks a worker that is not working on any sample.
const IDLE: u64 = u64::MAX;

pub(super) struct WorkerPool<J: Job> {
    shared: Arc<PoolShared<J>>,
    threads: Vec<JoinHandle<()>>,
    patience: Duration,
    started: Instant,
    waited: Duration,
    images: u64,
    tally: Tally,
}

struct PoolShared<J: Job> {
    job: J,
    state: Mutex<PoolState<J::Batch>>,
    /// Notified when a slot was freed or the pool was stopped.
    work: Condvar,
    /// Notified when rows were finished or a worker ended.
    done: Condvar,
    stopped: AtomicBool,
    /// Rows made since the start, which distinguish slow workers from stuck ones.
    made: AtomicU64,
    /// The current sample of each worker, or [`IDLE`].
    current: Vec<AtomicU64>,
    outage: Outage,
    free: Arc<BatchPool<J::Batch>>,
}

impl<J: Job> std::fmt::Debug for WorkerPool<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

impl<J: Job> WorkerPool<J> {
    pub(super) fn start(job: J, workers: Workers, tally: Tally) -> Result<Self, DataError> {
        let threads = workers.threads.get();
        let prefetch = workers.prefetch.get();
        let shared = Arc::new(PoolShared {
            state: Mutex::new(PoolState::new(job.steps(), prefetch)),
            job,
            work: Condvar::new(),
            done: Condvar::new(),
            stopped: AtomicBool::new(false),
            made: AtomicU64::new(0),
            current: (0..threads).map(|_| AtomicU64::new(IDLE)).collect(),
            outage: Outage::default(),
            // All slots, plus the batch that the consumer holds: a consumer that is faster than the workers returns every
            // batch before the next slot is opened.
            free: Arc::new(BatchPool::new(prefetch.saturating_add(1))),
        });
        let mut pool = Self {
            shared,
            threads: Vec::with_capacity(threads),
            patience: workers.patience,
            started: Instant::now(),
            waited: Duration::ZERO,
            images: 0,
            tally,
        };
        for worker in 0..threads {
            let shared = Arc::clone(&pool.shared);
            let local = shared.job.worker_state();
            pool.shared.state().working += 1;
            let thread = Builder::new().name(format!("loader-{worker}")).spawn(move || {
                let guard = WorkerGuard(&shared);
                shared.work_on(worker, local);
                drop(guard);
            });
            match thread {
                Ok(thread) => pool.threads.push(thread),
                Err(error) => {
                    pool.shared.state().working -= 1;
                    return Err(DataError::Thread(error));
                }
            }
        }
        Ok(pool)
    }

    pub(super) fn set_warn(&self, warn: Warn) {
        self.shared.outage.set_warn(warn);
    }

    /// Returns the next batch, unless `stop` returns true first; `None` after the last one and after an error.
    pub(super) fn next(
        &mut self,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Result<PooledBatch<J::Batch>, DataError>> {
        let started = Instant::now();
        let mut outcome = self.wait(stop);
        self.waited += started.elapsed();
        if let Some(Ok(batch)) = &outcome {
            match self.shared.job.count(batch, &mut self.tally) {
                Ok(images) => self.images += images as u64,
                Err(error) => outcome = Some(Err(error)),
            }
        }
        if !matches!(outcome, Some(Ok(_))) {
            self.stop();
        }
        outcome
    }

    fn wait(&self, stop: &mut dyn FnMut() -> bool) -> Option<Result<PooledBatch<J::Batch>, DataError>> {
        let mut state = self.shared.state();
        let (mut made, mut since) = (self.shared.made(), Instant::now());
        loop {
            if state.stopped {
                return None;
            }
            if let Some(slot) = state.complete() {
                drop(state);
                if slot.is_ok() {
                    self.shared.outage.recovered();
                }
                self.shared.work.notify_all();
                return Some(slot.map(|batch| PooledBatch::new(batch, Arc::clone(&self.shared.free))));
            }
            let step = state.awaited()?;
            if state.working == 0 {
                return Some(Err(DataError::NoWorkers { step }));
            }
            if self.shared.made() != made {
                (made, since) = (self.shared.made(), Instant::now());
            }
            let Some(left) = self.patience.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) else {
                state.stalled = true;
                return Some(Err(DataError::Stalled {
                    ids: self.shared.in_progress(),
                    after: since.elapsed(),
                }));
            };
            if stop() {
                return Some(Err(DataError::Interrupted));
            }
            if since.elapsed() >= SILENCE {
                self.shared.outage.silent(&self.shared.in_progress(), self.patience);
            }
            let left = left.min(POLL_INTERVAL);
            state = self.shared.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Stops the workers and discards unfinished batches.
    fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.shared.state().stopped = true;
        self.shared.work.notify_all();
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    pub(super) fn counters(&self) -> Counters {
        Counters { images: self.images, elapsed: self.started.elapsed(), waited: self.waited }
    }
}

impl<J: Job> Drop for WorkerPool<J> {
    fn drop(&mut self) {
        self.stop();
        let state = self.shared.state();
        // A thread cannot be killed from outside: if one hangs, all are detached.
        let patience = if state.stalled { Duration::ZERO } else { self.patience.min(SHUTDOWN_TIMEOUT) };
        let gone = self.shared.done.wait_timeout_while(state, patience, |state| state.working > 0);
        let all_gone = gone.unwrap_or_else(PoisonError::into_inner).0.working == 0;
        for thread in self.threads.drain(..).filter(|_| all_gone) {
            // A panic was already turned into an error where it happened.
            let _ = thread.join();
        }
    }
}

/// Notifies the consumer when a worker ends, even by a panic.
struct WorkerGuard<'a, J: Job>(&'a PoolShared<J>);

impl<J: Job> Drop for WorkerGuard<'_, J> {
    fn drop(&mut self) {
        self.0.state().working -= 1;
        self.0.done.notify_all();
    }
}

impl<J: Job> PoolShared<J> {
    fn state(&self) -> MutexGuard<'_, PoolState<J::Batch>> {
        // Code under this lock cannot panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    fn in_progress(&self) -> Vec<u64> {
        self.current.iter().map(|id| id.load(Ordering::Relaxed)).filter(|&id| id != IDLE).collect()
    }

    fn work_on(&self, worker: usize, mut local: J::WorkerState) {
        let current = &self.current[worker];
        let mut pixels = vec![0; rows_at_once(self.job.bytes()) * self.job.bytes()];
        while let Some(task) = self.claim() {
            let mut row = task.rows.start;
            let work = AssertUnwindSafe(|| self.make(&task, &mut row, &mut local, current, &mut pixels));
            let outcome = catch_unwind(work).unwrap_or_else(|panic| {
                // The panic may have left the state inconsistent, so it is discarded.
                local = self.job.worker_state();
                let id = current.load(Ordering::Relaxed);
                Err(DataError::panicked(id, panic.as_ref()))
            });
            current.store(IDLE, Ordering::Relaxed);
            let Task { step, rows, batch } = task;
            // Dropped before the rows are reported: `complete` needs the only reference to the batch.
            drop(batch);
            self.state().report(step, &rows, outcome.map_err(|error| (row, error)));
            self.done.notify_all();
        }
    }

    fn claim(&self) -> Option<Task<J::Batch>> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(task) = state.claim(rows_at_once(self.job.bytes())) {
                return Some(task);
            }
            if state.may_open() {
                let step = state.next_step();
                let mut batch = self.free.take().unwrap_or_default();
                self.job.open(step, &mut batch);
                state.open(batch, self.job.rows(step));
                self.done.notify_all();
                self.work.notify_all();
                continue;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes a row. Waits for temporarily unavailable storage, which does not affect the row.
    fn make_row(
        &self,
        place: (u64, usize),
        local: &mut J::WorkerState,
        current: &AtomicU64,
        pixels: &mut [u8],
    ) -> Result<J::Made, DataError> {
        let mut back_off = BackOff::default();
        loop {
            let error = match self.job.make(place, local, current, pixels) {
                Err(error) if error.is_transient() => error,
                made => return made,
            };
            let Some(wait) = back_off.next() else { return Err(error) };
            self.outage.failed(&error, &back_off);
            let paused = self.work.wait_timeout_while(self.state(), wait, |state| !state.stopped);
            if paused.unwrap_or_else(PoisonError::into_inner).0.stopped {
                return Err(DataError::Interrupted);
            }
        }
    }

    fn make(
        &self,
        task: &Task<J::Batch>,
        row: &mut usize,
        local: &mut J::WorkerState,
        current: &AtomicU64,
        pixels: &mut [u8],
    ) -> Result<(), DataError> {
        let bytes = self.job.bytes();
        let range = |n: usize| n * bytes..(n + 1) * bytes;
        let mut made = Vec::with_capacity(task.rows.len());
        for (n, at) in task.rows.clone().enumerate() {
            if self.stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            *row = at;
            made.push(self.make_row((task.step, at), local, current, &mut pixels[range(n)])?);
            self.made.fetch_add(1, Ordering::Relaxed);
        }
        let mut batch = task.batch.lock().unwrap_or_else(PoisonError::into_inner);
        for (n, (row, made)) in task.rows.clone().zip(made).enumerate() {
            self.job.store(row, made, &pixels[range(n)], &mut batch);
        }
        Ok(())
    }
}
