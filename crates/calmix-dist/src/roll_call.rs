//! Who is still there after a failure.
//!
//! c10d says that an operation failed, not because of whom: the peers of a dead process close their connections in turn,
//! and everybody sees somebody else vanish. So every process keeps a thread beside its work that waits for one key in the
//! store. Whoever sees a failure sets that key for everybody; the threads answer at once, even where the process is busy
//! computing, and look who else answered. A process that is dead, frozen or gone does not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::binding::{Store, Thrown};

/// What the thread has found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// These ranks did not answer; whoever saw the failure first, as it wrote it.
    Silent { ranks: Vec<usize>, noticed_by: String },
    /// The store cannot be reached.
    StoreLost,
}

/// The thread's side and ours.
#[derive(Default)]
struct Shared {
    called: AtomicBool,
    verdict: Mutex<Option<Verdict>>,
    found: Condvar,
}

/// A thread that answers for this process.
pub(crate) struct RollCall {
    shared: Arc<Shared>,
    store: Store,
    seat: Seat,
}

/// A process in its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seat {
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// Whether the store lives and dies with this process.
    pub(crate) keeps_store: bool,
    /// How much of the time that an operation is allowed is kept back for finding out who is missing.
    pub(crate) patience: Duration,
}

/// What a process writes under its own key when it leaves in peace.
const LEAVE: &str = "leave";

impl RollCall {
    /// Begins to listen, through a connection of its own.
    pub(crate) fn listen(store: Store, seat: Seat) -> Result<Self, Thrown> {
        let shared = Arc::new(Shared::default());
        let (ear, told) = (store.connect_again()?, Arc::clone(&shared));
        let spawned = std::thread::Builder::new().name("calmix-roll-call".into()).spawn(move || {
            if let Some(verdict) = answer(&ear, seat, &told.called) {
                *told.verdict.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
                told.found.notify_all();
            }
        });
        spawned.map_err(|error| Thrown::new(format!("a thread cannot be started: {error}")))?;
        Ok(Self { shared, store, seat })
    }

    /// Set when somebody saw a failure.
    pub(crate) fn called(&self) -> &AtomicBool {
        &self.shared.called
    }

    /// Calls everybody, because of what was seen here.
    pub(crate) fn call(&self, why: &str) {
        if !self.shared.called.load(Ordering::Acquire) {
            // Where the store is lost the thread notices as well.
            let _ = (0..self.seat.size).try_for_each(|rank| self.store.set(&call_key(rank), why));
        }
    }

    /// Who did not answer, as soon as that is known.
    pub(crate) fn verdict(&self) -> Verdict {
        let deadline = Instant::now() + self.seat.patience;
        let mut verdict = self.shared.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = &*verdict {
                return found.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The thread has not even been told: whatever keeps the store is frozen.
                return Verdict::StoreLost;
            }
            let woken = self.shared.found.wait_timeout(verdict, left);
            verdict = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for RollCall {
    fn drop(&mut self) {
        // The thread ends by itself. It is not waited for: the store may be frozen.
        if !self.shared.called.load(Ordering::Acquire) {
            let _ = self.store.set(&call_key(self.seat.rank), LEAVE);
        }
    }
}

fn call_key(rank: usize) -> String {
    format!("call/{rank}")
}

fn here_key(rank: usize) -> String {
    format!("here/{rank}")
}

/// The thread: waits until it is called, answers, and looks who else did. Nothing when the process leaves in peace.
fn answer(store: &Store, seat: Seat, called: &AtomicBool) -> Option<Verdict> {
    let (key, hour) = (call_key(seat.rank), Duration::from_hours(1));
    loop {
        match store.wait(&key, hour) {
            Ok(()) => break,
            Err(thrown) if thrown.timed_out => {}
            Err(_) => return Some(Verdict::StoreLost),
        }
    }
    let noticed_by = match store.get(&key) {
        Ok(why) if why == LEAVE => return None,
        Ok(why) => why,
        Err(_) => return Some(Verdict::StoreLost),
    };
    called.store(true, Ordering::Release);
    match silent(store, seat) {
        Ok(ranks) => Some(Verdict::Silent { ranks, noticed_by }),
        Err(_) => Some(Verdict::StoreLost),
    }
}

fn silent(store: &Store, seat: Seat) -> Result<Vec<usize>, Thrown> {
    store.set(&here_key(seat.rank), "")?;
    let ranks = if arrive(store, "here", seat.size, seat.patience * 5 / 8)? {
        Vec::new()
    } else {
        absent(store, &here_key, 0, seat.size)?
    };
    hear(store, seat.size - ranks.len(), seat.keeps_store, seat.patience / 4)?;
    Ok(ranks)
}

/// Counts up, and waits until as many as there are have done so; false when they have not in time.
///
/// The first whose time is up tells it to the others, whose time may have begun later.
pub(crate) fn arrive(store: &Store, name: &str, size: usize, timeout: Duration) -> Result<bool, Thrown> {
    let (outcome, all, not_all) = (format!("{name}/outcome"), "all", "not all");
    if store.add(&format!("{name}/count"), 1)? >= size as i64 {
        store.set(&outcome, all)?;
        return Ok(true);
    }
    match store.wait(&outcome, timeout) {
        Ok(()) => Ok(store.get(&outcome)? == all),
        Err(thrown) if thrown.timed_out => store.set(&outcome, not_all).map(|()| false),
        Err(thrown) => Err(thrown),
    }
}

/// Tells that we know who is missing; whoever keeps the store stays until all others do, else they would take it for
/// the one that died.
pub(crate) fn hear(
    store: &Store,
    others: usize,
    keeps_store: bool,
    patience: Duration,
) -> Result<(), Thrown> {
    let began = Instant::now();
    let mut heard = store.add("heard", 1)?;
    while keeps_store && heard < others as i64 && began.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(2));
        heard = store.add("heard", 0)?;
    }
    Ok(())
}

/// The ranks from `low` to `high` whose key is not there, by halving: few questions where few are absent.
pub(crate) fn absent(
    store: &Store,
    key: &impl Fn(usize) -> String,
    low: usize,
    high: usize,
) -> Result<Vec<usize>, Thrown> {
    let keys: Vec<String> = (low..high).map(key).collect();
    if store.has(&keys)? {
        return Ok(Vec::new());
    }
    if high - low == 1 {
        return Ok(vec![low]);
    }
    let middle = low.midpoint(high);
    let mut ranks = absent(store, key, low, middle)?;
    ranks.extend(absent(store, key, middle, high)?);
    Ok(ranks)
}
