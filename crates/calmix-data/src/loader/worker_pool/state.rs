//! The state shared by workers and consumer, without threads or locks.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::DataError;

/// The slots in step order, and the number of workers.
pub(super) struct PoolState<B> {
    slots: VecDeque<Slot<B>>,
    /// Steps without a slot so far.
    steps: Range<u64>,
    prefetch: usize,
    pub(super) stopped: bool,
    pub(super) stalled: bool,
    /// Workers that are still running.
    pub(super) working: usize,
}

/// A batch in progress.
struct Slot<B> {
    step: u64,
    batch: Arc<Mutex<B>>,
    rows: usize,
    claimed: usize,
    stored: usize,
    /// The first row that failed, with its error.
    failure: Option<(usize, DataError)>,
}

/// A range of rows for one worker.
pub(super) struct Task<B> {
    pub(super) step: u64,
    pub(super) rows: Range<usize>,
    pub(super) batch: Arc<Mutex<B>>,
}

impl<B> PoolState<B> {
    pub(super) fn new(steps: Range<u64>, prefetch: usize) -> Self {
        Self { slots: VecDeque::new(), steps, prefetch, stopped: false, stalled: false, working: 0 }
    }

    /// Returns the step after the last one with a slot.
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
    pub(super) fn claim(&mut self, max_rows: usize) -> Option<Task<B>> {
        let slot = self.slots.back_mut().filter(|slot| slot.claimed < slot.rows)?;
        let rows = slot.claimed..slot.rows.min(slot.claimed + max_rows);
        slot.claimed = rows.end;
        Some(Task { step: slot.step, rows, batch: Arc::clone(&slot.batch) })
    }

    /// Records the outcome of rows. After a failure no later step starts, but earlier steps are completed.
    pub(super) fn report(&mut self, step: u64, rows: &Range<usize>, outcome: Result<(), (usize, DataError)>) {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.step == step) else { return };
        slot.stored += rows.len();
        if let Err((row, error)) = outcome {
            // The error of the first row, so that it does not depend on the timing of the workers.
            if slot.failure.as_ref().is_none_or(|first| row < first.0) {
                slot.failure = Some((row, error));
            }
            self.steps.end = self.steps.start;
        }
    }

    /// Returns the step that the consumer waits for, if any.
    pub(super) fn awaited(&self) -> Option<u64> {
        self.slots.front().map(|slot| slot.step).or_else(|| self.steps.clone().next())
    }

    /// Takes the first slot if it is complete.
    pub(super) fn complete(&mut self) -> Option<Result<B, DataError>> {
        let slot = self.slots.pop_front_if(|slot| slot.stored == slot.rows)?;
        if let Some((_, error)) = slot.failure {
            return Some(Err(error));
        }
        let batch = Arc::into_inner(slot.batch).ok_or(DataError::NoWorkers { step: slot.step });
        Some(batch.map(|batch| batch.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: u64 = 2;
    const ROWS: usize = 3;
    /// Rows per task, so that a step has two tasks.
    const MAX_TASK_ROWS: usize = 2;

    /// The next action of a worker. Each action happens under one lock, so that whole actions interleave.
    enum Worker {
        Claim,
        Store(Task<Vec<u32>>),
        Report(u64, Range<usize>),
    }

    /// All threads of the pool in one: each action is chosen among the workers and, as the last, the consumer.
    struct Model {
        state: PoolState<Vec<u32>>,
        workers: Vec<Worker>,
        /// The steps and rows that fail.
        failing: Vec<(u64, usize)>,
        /// Whether rows were reported since the consumer last checked.
        is_notified: bool,
        delivered: Vec<Result<Vec<u32>, DataError>>,
    }

    impl Model {
        fn new(workers: usize, prefetch: usize, failing: &[(u64, usize)]) -> Self {
            Self {
                state: PoolState::new(0..STEPS, prefetch),
                workers: (0..workers).map(|_| Worker::Claim).collect(),
                failing: failing.to_vec(),
                is_notified: false,
                delivered: Vec::new(),
            }
        }

        /// Lists the threads that can act without waiting.
        fn ready(&self) -> Vec<usize> {
            let Self { state, workers, delivered, .. } = self;
            if delivered.last().is_some_and(Result::is_err) {
                return Vec::new();
            }
            let is_claimable = state.slots.back().is_some_and(|slot| slot.claimed < slot.rows);
            let is_ready =
                |worker: &Worker| !matches!(worker, Worker::Claim) || is_claimable || state.may_open();
            let mut ready: Vec<usize> = (0..workers.len()).filter(|&n| is_ready(&workers[n])).collect();
            if self.is_notified {
                ready.push(workers.len());
            }
            ready
        }

        fn act(&mut self, thread: usize) {
            let Self { state, workers, failing, is_notified, delivered } = self;
            let Some(worker) = workers.get_mut(thread) else {
                let found = state.complete();
                // The consumer checks again after a batch, and waits if there is none.
                *is_notified = found.is_some();
                delivered.extend(found);
                return;
            };
            *worker = match std::mem::replace(worker, Worker::Claim) {
                Worker::Claim => {
                    if state.slots.back().is_none_or(|slot| slot.claimed >= slot.rows) {
                        assert!(
                            state.slots.iter().all(|slot| slot.failure.is_none()),
                            "begun after a failure"
                        );
                        state.open(vec![0; ROWS], ROWS);
                    }
                    Worker::Store(state.claim(MAX_TASK_ROWS).unwrap())
                }
                Worker::Store(Task { step, rows, batch }) => {
                    let mut batch = batch.lock().unwrap();
                    rows.clone().for_each(|row| batch[row] += 1 + step as u32);
                    Worker::Report(step, rows)
                }
                Worker::Report(step, rows) => {
                    let failed = rows.clone().find(|&row| failing.contains(&(step, row)));
                    let error = |row| (row, DataError::NoReplacement { id: step, tried: row as u64 });
                    state.report(step, &rows, failed.map(error).map_or(Ok(()), Err));
                    *is_notified = true;
                    Worker::Claim
                }
            };
        }
    }

    /// Runs a model in every order of actions, and returns the number of orders.
    fn every_order(model: impl Fn() -> Model, check: impl Fn(&Model)) -> u64 {
        // The chosen action at each point, and the number of possible actions.
        let mut chosen: Vec<(usize, usize)> = Vec::new();
        let mut orders = 0;
        loop {
            let mut model = model();
            for place in 0.. {
                let ready = model.ready();
                if ready.is_empty() {
                    break;
                }
                if place == chosen.len() {
                    chosen.push((0, ready.len()));
                }
                model.act(ready[chosen[place].0]);
            }
            check(&model);
            orders += 1;
            while chosen.pop_if(|(choice, count)| *choice + 1 == *count).is_some() {}
            let Some((choice, _)) = chosen.last_mut() else { return orders };
            *choice += 1;
        }
    }

    #[test]
    fn batches_are_whole_in_every_order() {
        for (workers, prefetch) in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)] {
            let model = || Model::new(workers, prefetch, &[]);
            let orders = every_order(model, |model| {
                let delivered: Vec<_> = model.delivered.iter().map(|batch| batch.as_ref().unwrap()).collect();
                assert_eq!(delivered, [&[1; ROWS], &[2; ROWS]], "both steps, each row once");
            });
            assert!(orders > 1, "{workers} workers, {prefetch} slots");
        }
    }

    /// The first row of the first step determines the error, not the row that failed first in time.
    #[test]
    fn failure_is_the_same_in_every_order() {
        for failing in [&[(0, 2)][..], &[(0, 1), (1, 0)], &[(1, 0), (1, 2)], &[(1, 2)]] {
            for (workers, prefetch) in [(1, 2), (2, 1), (2, 2), (3, 1)] {
                let model = || Model::new(workers, prefetch, failing);
                every_order(model, |model| {
                    let (step, row) = failing[0];
                    let Some((Err(DataError::NoReplacement { id, tried }), whole)) =
                        model.delivered.split_last()
                    else {
                        panic!("{:?}", model.delivered);
                    };
                    assert_eq!((*id, *tried as usize), (step, row));
                    assert_eq!(whole.len() as u64, step, "the steps before it");
                });
            }
        }
    }
}
