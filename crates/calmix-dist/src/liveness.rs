//! Finding the ranks that are alive after a failure.
//!
//! c10d reports that an operation failed, not which rank caused it: the peers of a dead process close their connections one after
//! the other, and every rank loses another peer. So every process runs a thread that waits for one key in the store, which is set
//! by any process that notices a failure. The threads respond immediately, even if their process is busy computing, and check
//! which other ranks responded. A process that is dead, frozen or gone does not respond.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::binding::{C10dError, Store};

/// The result of the check that follows a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LivenessReport {
    /// These ranks did not respond. `noticed_by` is the note of the rank that first noticed the failure.
    Missing {
        ranks: Vec<usize>,
        noticed_by: String,
    },
    StoreLost,
}

/// The state that the thread and the group share.
#[derive(Default)]
struct LivenessState {
    /// Whether a rank has noticed a failure, or the store is lost.
    failed: AtomicBool,
    /// Whether this process has left without a failure.
    left: AtomicBool,
    progress: Mutex<CheckProgress>,
    progressed: Condvar,
}

#[derive(Default)]
struct CheckProgress {
    report: Option<LivenessReport>,
    /// Whether this process may end, because no other rank needs it any more.
    finished: bool,
}

/// The thread that responds for this process.
pub(crate) struct Liveness {
    state: Arc<LivenessState>,
    store: Store,
    member: GroupMember,
}

/// This process as a member of its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupMember {
    pub(crate) rank: usize,
    pub(crate) size: usize,
    /// Whether the store runs inside this process.
    pub(crate) hosts_store: bool,
    /// The part of an operation's timeout that is reserved for finding the missing ranks.
    pub(crate) patience: Duration,
}

/// The key that a process sets when it notices a failure.
const FAILURE: &str = "failure";

/// The time for which the thread may outlive its group.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Liveness {
    /// Starts the thread, with its own connection to the store.
    pub(crate) fn listen(store: Store, member: GroupMember) -> Result<Self, C10dError> {
        let state = Arc::new(LivenessState::default());
        let (thread_store, shared) = (store.connect_again()?, Arc::clone(&state));
        let spawned = std::thread::Builder::new().name("calmix-liveness".into()).spawn(move || {
            if let Some(report) = respond_to_failure(&thread_store, member, &shared) {
                shared.update(|progress| progress.report = Some(report.clone()));
                if let LivenessReport::Missing { ranks, .. } = &report {
                    let others = member.size - ranks.len();
                    // If the store is lost, no process waits for this rank to be counted.
                    let _ = acknowledge(&thread_store, others, member.hosts_store, member.patience / 4);
                }
                shared.update(|progress| progress.finished = true);
            }
        });
        spawned.map_err(|error| C10dError::new(format!("a thread cannot be started: {error}")))?;
        Ok(Self { state, store, member })
    }

    /// Returns the flag that is set when a rank has noticed a failure, or the store is lost.
    pub(crate) fn failed(&self) -> &AtomicBool {
        &self.state.failed
    }

    /// Announces to all ranks a failure that this process noticed.
    pub(crate) fn report_failure(&self, why: &str) {
        if !self.state.failed.load(Ordering::Acquire) {
            // If the store is lost, the thread notices it as well.
            let _ = self.store.set(FAILURE, why);
        }
    }

    /// Returns the function for a thread that has lost the connection to a rank. It announces the failure, unless the rank has
    /// left or this process already knows of one. `store` is that of this process.
    pub(crate) fn lost(&self, store: Store, rank: usize, why: String) -> impl FnOnce() + Send + use<> {
        let state = Arc::clone(&self.state);
        move || {
            // Wait briefly: a failure noticed elsewhere closes this process's connections too.
            std::thread::sleep(Duration::from_millis(50));
            if state.failed.load(Ordering::Acquire) {
                return;
            }
            // Use a new connection, because the store may be frozen. No process waits for this thread.
            let Ok(store) = store.connect_again() else { return };
            if !store.has(&[left_key(rank)]).unwrap_or(true) {
                let _ = store.set(FAILURE, &why);
            }
        }
    }

    /// Waits for the result of the thread, and until no other rank needs this process.
    pub(crate) fn wait_for_report(&self) -> LivenessReport {
        // If this process hosts the store, the store is not lost; the thread may only be late on a busy machine.
        let patience = if self.member.hosts_store { self.member.patience * 10 } else { self.member.patience };
        let deadline = Instant::now() + patience;
        let mut progress = self.state.progress.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if progress.finished || left.is_zero() {
                // Without a result, the key has not reached the thread, because the host of the store is frozen.
                return progress.report.clone().unwrap_or(LivenessReport::StoreLost);
            }
            let woken = self.state.progressed.wait_timeout(progress, left);
            progress = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl LivenessState {
    fn update(&self, change: impl FnOnce(&mut CheckProgress)) {
        change(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
        self.progressed.notify_all();
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        // The thread ends by itself. It is not joined, because the store may be frozen.
        self.state.left.store(true, Ordering::Release);
        if !self.state.failed.load(Ordering::Acquire) {
            let _ = self.store.set(&left_key(self.member.rank), "");
        }
    }
}

fn left_key(rank: usize) -> String {
    format!("left/{rank}")
}

fn alive_key(rank: usize) -> String {
    format!("alive/{rank}")
}

/// Runs in the thread: waits for a failure, responds, and checks which other ranks did. `None` if the process leaves without a
/// failure.
fn respond_to_failure(store: &Store, member: GroupMember, state: &LivenessState) -> Option<LivenessReport> {
    let waited = loop {
        let waited = store.wait(FAILURE, POLL_INTERVAL);
        if state.left.load(Ordering::Acquire) {
            return None;
        }
        if !waited.as_ref().is_err_and(|error| error.timed_out) {
            break waited;
        }
    };
    // Set this even if the store is lost: an operation of NCCL would otherwise wait for its timeout.
    state.failed.store(true, Ordering::Release);
    let report = waited.and_then(|()| {
        let noticed_by = store.get(FAILURE)?;
        unanswered(store, member).map(|ranks| LivenessReport::Missing { ranks, noticed_by })
    });
    Some(report.unwrap_or(LivenessReport::StoreLost))
}

fn unanswered(store: &Store, member: GroupMember) -> Result<Vec<usize>, C10dError> {
    store.set(&alive_key(member.rank), "")?;
    if arrive(store, "alive", member.size, member.patience * 5 / 8)? {
        return Ok(Vec::new());
    }
    missing_ranks(store, &alive_key, 0, member.size)
}

/// Counts this rank, and waits until all `size` ranks are counted; returns false if they are not counted in time.
///
/// The first rank whose timeout passes ends the wait for the others, which may have started later.
pub(crate) fn arrive(store: &Store, name: &str, size: usize, timeout: Duration) -> Result<bool, C10dError> {
    let (outcome, all, not_all) = (format!("{name}/outcome"), "all", "not all");
    if store.add(&format!("{name}/count"), 1)? >= size as i64 {
        store.set(&outcome, all)?;
        return Ok(true);
    }
    match store.wait(&outcome, timeout) {
        Ok(()) => Ok(store.get(&outcome)? == all),
        Err(error) if error.timed_out => store.set(&outcome, not_all).map(|()| false),
        Err(error) => Err(error),
    }
}

/// Counts this rank among those that know the missing ranks. The host of the store waits until all others are counted; otherwise
/// they would take the host for a missing rank.
pub(crate) fn acknowledge(
    store: &Store,
    others: usize,
    hosts_store: bool,
    patience: Duration,
) -> Result<(), C10dError> {
    let began = Instant::now();
    let mut count = store.add("acknowledged", 1)?;
    while hosts_store && count < others as i64 && began.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(2));
        count = store.add("acknowledged", 0)?;
    }
    Ok(())
}

/// Returns the ranks from `low` to `high` whose key is not in the store. Bisects, which takes few requests if few are missing.
pub(crate) fn missing_ranks(
    store: &Store,
    key: &impl Fn(usize) -> String,
    low: usize,
    high: usize,
) -> Result<Vec<usize>, C10dError> {
    let keys: Vec<String> = (low..high).map(key).collect();
    if store.has(&keys)? {
        return Ok(Vec::new());
    }
    if high - low == 1 {
        return Ok(vec![low]);
    }
    let middle = low.midpoint(high);
    let mut ranks = missing_ranks(store, key, low, middle)?;
    ranks.extend(missing_ranks(store, key, middle, high)?);
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_store_counts_as_a_failure() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let (port, minute) = (free.expect("a free port").port(), Duration::from_mins(1));
        let host = Store::tcp("127.0.0.1", port, true, minute).expect("a store");
        let guest = Store::tcp("127.0.0.1", port, false, minute).expect("a connection");
        let patience = Duration::from_millis(450);
        let member = GroupMember { rank: 1, size: 2, hosts_store: false, patience };
        let liveness = Liveness::listen(guest, member).expect("a thread");
        assert!(!liveness.failed().load(Ordering::Acquire));
        let began = Instant::now();
        drop(host);
        while !liveness.failed().load(Ordering::Acquire) {
            assert!(began.elapsed() < Duration::from_secs(5), "no rank noticed");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(liveness.wait_for_report(), LivenessReport::StoreLost);
    }

    /// The thread of a busy machine is late: the host of the store still names the rank that is missing, not itself.
    #[test]
    fn the_host_of_the_store_waits_for_its_own_late_thread() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = free.expect("a free port").port();
        let store = Store::tcp("127.0.0.1", port, true, Duration::from_mins(1)).expect("a store");
        let patience = Duration::from_millis(100);
        let member = GroupMember { rank: 0, size: 2, hosts_store: true, patience };
        let liveness =
            Liveness::listen(store.connect_again().expect("a connection"), member).expect("a thread");
        let late = std::thread::spawn(move || {
            std::thread::sleep(3 * patience);
            store.set(FAILURE, "rank 0 in barrier").expect("the store takes a key");
            store
        });
        let expected = LivenessReport::Missing { ranks: vec![1], noticed_by: "rank 0 in barrier".into() };
        assert_eq!(liveness.wait_for_report(), expected);
        drop(late.join().expect("the thread ends"));
    }
}
