//! The state that workers and consumer share, without threads or locks.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::loader::error::LoadError;

/// The slots in step order, and the number of workers.
pub(super) struct PoolState<B> {
    slots: VecDeque<Slot<B>>,
    /// Steps that have no slot yet.
    steps: Range<u64>,
    prefetch: usize,
    pub(super) stopped: bool,
    pub(super) stalled: bool,
    /// Workers that have not ended.
    pub(super) working: usize,
    /// Batches that did not reuse the memory of an earlier batch.
    pub(super) allocated: u64,
}

/// A batch in progress.
struct Slot<B> {
    step: u64,
    batch: Arc<Mutex<B>>,
    rows: usize,
    claimed: usize,
    stored: usize,
    /// The first row that failed, and why.
    failure: Option<(usize, LoadError)>,
}

/// Rows that one worker makes.
pub(super) struct Task<B> {
    pub(super) step: u64,
    pub(super) rows: Range<usize>,
    pub(super) batch: Arc<Mutex<B>>,
}

impl<B> PoolState<B> {
    pub(super) fn new(steps: Range<u64>, prefetch: usize) -> Self {
        Self {
            slots: VecDeque::new(),
            steps,
            prefetch,
            stopped: false,
            stalled: false,
            working: 0,
            allocated: 0,
        }
    }

    /// The step that comes after those that have slots.
    pub(super) fn next_step(&self) -> u64 {
        self.steps.start
    }

    pub(super) fn may_open(&self) -> bool {
        self.slots.len() < self.prefetch && !self.steps.is_empty()
    }

    pub(super) fn open(&mut self, batch: B, rows: usize) {
        if let Some(step) = self.steps.next() {
            let batch = Arc::new(Mutex::new(batch));
            self.slots.push_back(Slot { step, batch, rows, claimed: 0, stored: 0, failure: None });
        }
    }

    /// Claims the next free rows. Slots are opened one by one, so only the last can have free rows.
    pub(super) fn claim(&mut self, most: usize) -> Option<Task<B>> {
        let slot = self.slots.back_mut().filter(|slot| slot.claimed < slot.rows)?;
        let rows = slot.claimed..slot.rows.min(slot.claimed + most);
        slot.claimed = rows.end;
        Some(Task { step: slot.step, rows, batch: Arc::clone(&slot.batch) })
    }

    /// Rows are finished. After a failure no later step is begun; the steps before it are completed.
    pub(super) fn report(&mut self, step: u64, rows: &Range<usize>, outcome: Result<(), (usize, LoadError)>) {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.step == step) else { return };
        slot.stored += rows.len();
        if let Err((row, error)) = outcome {
            // The first row's error, so that the reported error does not depend on the timing of the workers.
            if slot.failure.as_ref().is_none_or(|first| row < first.0) {
                slot.failure = Some((row, error));
            }
            self.steps.end = self.steps.start;
        }
    }

    /// The step that the consumer waits for, if any.
    pub(super) fn awaited(&self) -> Option<u64> {
        self.slots.front().map(|slot| slot.step).or_else(|| self.steps.clone().next())
    }

    /// Takes the first slot if it is complete.
    pub(super) fn complete(&mut self) -> Option<Result<B, LoadError>> {
        let slot = self.slots.pop_front_if(|slot| slot.stored == slot.rows)?;
        if let Some((_, error)) = slot.failure {
            return Some(Err(error));
        }
        let batch = Arc::into_inner(slot.batch).ok_or(LoadError::NoWorkers { step: slot.step });
        Some(batch.map(|batch| batch.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }
}
