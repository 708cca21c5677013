//! Worker threads that make batches, and the one place where they meet.
//!
//! A batch in the making is a slot. Workers claim a few rows of the newest slot at a time, make them in memory
//! of their own, and copy them in under the slot's lock. The first slot is delivered once it is complete.

mod state;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::error::LoadError;
use super::loan::{Loan, Spares};
use super::{Counters, Workers};
use state::{State, Task};

/// What batches are made of. All of it is a pure function of the step and the row.
pub(super) trait Job: Send + Sync + 'static {
    /// What is delivered.
    type Batch: Default + Send + 'static;
    /// What is known of a row beside its pixels.
    type Row;
    /// What a worker keeps from row to row.
    type Tools: Send + 'static;

    fn steps(&self) -> Range<u64>;
    fn rows(&self, step: u64) -> usize;
    /// Bytes that the views of one row take at most.
    fn bytes(&self) -> usize;
    fn tools(&self) -> Self::Tools;
    /// Makes `batch`, which may be an earlier one, ready for the rows of `step`.
    fn open(&self, step: u64, batch: &mut Self::Batch);
    /// Reads and shows the row at `(step, row)`, with the sample it has in hand in `hand`.
    fn make(
        &self,
        place: (u64, usize),
        tools: &mut Self::Tools,
        hand: &AtomicU64,
        pixels: &mut [u8],
    ) -> Result<Self::Row, LoadError>;
    fn store(&self, row: usize, made: Self::Row, pixels: &[u8], batch: &mut Self::Batch);
}

/// Rows that a worker takes at a time: enough that locks cost nothing, few enough that a batch is made by all.
const ROWS: usize = 8;

/// The largest batch that is believed to be meant: 64 GiB.
const LARGEST: u128 = 1 << 36;

/// Whether a batch of so many rows can be meant, and the memory of a worker with it.
pub(super) fn check_size(rows: u64, bytes: usize) -> Result<(), LoadError> {
    let fits = u128::from(rows.max(ROWS as u64)) * bytes as u128 <= LARGEST;
    fits.then_some(()).ok_or(LoadError::TooLarge { rows, bytes })
}

/// No sample in hand.
pub(super) const NONE: u64 = u64::MAX;

pub(super) struct Crew<J: Job> {
    shared: Arc<Shared<J>>,
    threads: Vec<JoinHandle<()>>,
    patience: Duration,
    started: Instant,
    waited: Duration,
    images: u64,
}

struct Shared<J: Job> {
    job: J,
    state: Mutex<State<J::Batch>>,
    /// A slot was freed, or it is time to go.
    work: Condvar,
    /// Something was finished, or a worker left.
    done: Condvar,
    stopped: AtomicBool,
    /// Rows made since the start, by which the consumer tells slow from stuck.
    made: AtomicU64,
    hands: Vec<AtomicU64>,
    spares: Arc<Spares<J::Batch>>,
}

impl<J: Job> std::fmt::Debug for Crew<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crew").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

impl<J: Job> Crew<J> {
    pub(super) fn start(job: J, workers: Workers) -> Result<Self, LoadError> {
        let threads = workers.threads.get();
        let prefetch = workers.prefetch.get();
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(job.steps(), prefetch)),
            job,
            work: Condvar::new(),
            done: Condvar::new(),
            stopped: AtomicBool::new(false),
            made: AtomicU64::new(0),
            hands: (0..threads).map(|_| AtomicU64::new(NONE)).collect(),
            // All slots, and the batch in the consumer's hands: a consumer that is faster than all workers brings
            // every one of them back before the next is opened.
            spares: Arc::new(Spares::new(prefetch.saturating_add(1))),
        });
        let mut crew = Self {
            shared,
            threads: Vec::with_capacity(threads),
            patience: workers.patience,
            started: Instant::now(),
            waited: Duration::ZERO,
            images: 0,
        };
        for worker in 0..threads {
            let shared = Arc::clone(&crew.shared);
            let tools = shared.job.tools();
            crew.shared.state().working += 1;
            let thread = Builder::new().name(format!("loader-{worker}")).spawn(move || {
                let leaving = Leaving(&shared);
                shared.work_on(worker, tools);
                drop(leaving);
            });
            match thread {
                Ok(thread) => crew.threads.push(thread),
                Err(error) => {
                    crew.shared.state().working -= 1;
                    return Err(LoadError::Thread(error));
                }
            }
        }
        Ok(crew)
    }

    /// The next batch; none after the last one, and none after an error.
    pub(super) fn next(&mut self) -> Option<Result<Loan<J::Batch>, LoadError>> {
        let asked = Instant::now();
        let outcome = self.wait();
        self.waited += asked.elapsed();
        if !matches!(outcome, Some(Ok(_))) {
            self.stop();
        }
        outcome
    }

    fn wait(&self) -> Option<Result<Loan<J::Batch>, LoadError>> {
        let mut state = self.shared.state();
        let (mut made, mut since) = (self.shared.made(), Instant::now());
        loop {
            if state.stopped {
                return None;
            }
            if let Some(slot) = state.complete() {
                drop(state);
                self.shared.work.notify_all();
                return Some(slot.map(|batch| Loan::new(batch, Arc::clone(&self.shared.spares))));
            }
            let step = state.awaited()?;
            if state.working == 0 {
                return Some(Err(LoadError::NoWorkers { step }));
            }
            if self.shared.made() != made {
                (made, since) = (self.shared.made(), Instant::now());
            }
            let Some(left) = self.patience.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) else {
                state.stalled = true;
                return Some(Err(LoadError::Stalled { ids: self.shared.in_hand(), after: since.elapsed() }));
            };
            state = self.shared.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the work; what is in the making is given up.
    pub(super) fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.shared.state().stopped = true;
        self.shared.work.notify_all();
    }

    pub(super) fn count_images(&mut self, images: usize) {
        self.images += images as u64;
    }

    pub(super) fn counters(&self) -> Counters {
        let allocated = self.shared.state().allocated;
        Counters { images: self.images, elapsed: self.started.elapsed(), waited: self.waited, allocated }
    }
}

impl<J: Job> Drop for Crew<J> {
    fn drop(&mut self) {
        self.stop();
        let state = self.shared.state();
        // A thread cannot be ended from outside. One that hangs is left behind rather than waited for.
        let patience = if state.stalled { Duration::ZERO } else { self.patience };
        let gone = self.shared.done.wait_timeout_while(state, patience, |state| state.working > 0);
        let all_gone = gone.unwrap_or_else(PoisonError::into_inner).0.working == 0;
        for thread in self.threads.drain(..) {
            if all_gone || thread.is_finished() {
                // A panic was caught and reported where it happened.
                let _ = thread.join();
            }
        }
    }
}

/// Tells the consumer that a worker left, however it left.
struct Leaving<'a, J: Job>(&'a Shared<J>);

impl<J: Job> Drop for Leaving<'_, J> {
    fn drop(&mut self) {
        self.0.state().working -= 1;
        self.0.done.notify_all();
    }
}

impl<J: Job> Shared<J> {
    fn state(&self) -> MutexGuard<'_, State<J::Batch>> {
        // Nothing that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    fn in_hand(&self) -> Vec<u64> {
        self.hands.iter().map(|hand| hand.load(Ordering::Relaxed)).filter(|&id| id != NONE).collect()
    }

    fn work_on(&self, worker: usize, mut tools: J::Tools) {
        let hand = &self.hands[worker];
        let mut pixels = vec![0; ROWS * self.job.bytes()];
        while let Some(task) = self.claim() {
            let mut row = task.rows.start;
            let work = AssertUnwindSafe(|| self.make(&task, &mut row, &mut tools, hand, &mut pixels));
            let outcome = catch_unwind(work).unwrap_or_else(|panic| {
                // What was in the middle of being changed is not used again.
                tools = self.job.tools();
                let id = hand.load(Ordering::Relaxed);
                Err(LoadError::panicked(id, panic.as_ref()))
            });
            hand.store(NONE, Ordering::Relaxed);
            let Task { step, rows, batch } = task;
            // Before the report: whoever delivers the batch must be its only owner.
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
            if let Some(task) = state.claim(ROWS) {
                return Some(task);
            }
            if state.may_open() {
                let (mut batch, step) = (self.spares.take(), state.next_step());
                state.allocated += u64::from(batch.is_none());
                self.job.open(step, batch.get_or_insert_default());
                state.open(batch.unwrap_or_default(), self.job.rows(step));
                self.done.notify_all();
                self.work.notify_all();
                continue;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn make(
        &self,
        task: &Task<J::Batch>,
        row: &mut usize,
        tools: &mut J::Tools,
        hand: &AtomicU64,
        pixels: &mut [u8],
    ) -> Result<(), LoadError> {
        let bytes = self.job.bytes();
        let part = |n: usize| n * bytes..(n + 1) * bytes;
        let mut made = Vec::with_capacity(task.rows.len());
        for (n, at) in task.rows.clone().enumerate() {
            if self.stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            *row = at;
            made.push(self.job.make((task.step, at), tools, hand, &mut pixels[part(n)])?);
            self.made.fetch_add(1, Ordering::Relaxed);
        }
        let mut batch = task.batch.lock().unwrap_or_else(PoisonError::into_inner);
        for (n, (row, made)) in task.rows.clone().zip(made).enumerate() {
            self.job.store(row, made, &pixels[part(n)], &mut batch);
        }
        Ok(())
    }
}
