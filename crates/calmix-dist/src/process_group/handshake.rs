//! The handshake: the processes of one start of a job agree that they belong together.
//!
//! A launcher that restarts processes may keep its store, with all keys of earlier starts. torchrun's agents do, and no variable
//! distinguishes starts: each agent counts the restarts that it began, not those of another agent. So rank 0 publishes a nonce
//! for this start. The other ranks answer under it, each with its own nonce. When all have answered, rank 0 acknowledges exactly
//! these answers, each rank confirms, and rank 0 opens the round. A rank that is acknowledged and confirms is alive and has met a
//! live rank 0; keys of an earlier start are under another nonce, or acknowledge another one.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use crate::binding::{C10dError, Store};
use crate::liveness::{acknowledge, missing_ranks};

/// The time that a rank waits for a key before it checks whether the round is still the current one.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The key under which rank 0 publishes its nonce.
const ROUND: &str = "round";

/// The key that ends a round: all ranks have met, or one has given up.
const OUTCOME: &str = "outcome";
const ALL: &str = "all";
const NOT_ALL: &str = "not all";

/// A process that meets the others of its start.
pub(super) struct Handshake<'a> {
    /// The store with the keys of this job, from all its starts.
    pub(super) store: &'a Store,
    pub(super) rank: usize,
    pub(super) size: usize,
    /// Whether rank 0 hosts the store, so that it has no keys of earlier starts.
    pub(super) hosted_by_first: bool,
    pub(super) left: &'a dyn Fn() -> Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// All ranks have joined; their keys have this prefix.
    All(String),
    /// These ranks did not join in time.
    Missing(Vec<usize>),
    /// Another process has this rank.
    Taken,
}

/// The result of waiting for a key of a round.
enum Waited {
    Set,
    Over,
    /// Rank 0 has begun another round.
    Stale,
    TimedOut,
}

impl Handshake<'_> {
    pub(super) fn meet(&self) -> Result<Met, C10dError> {
        let nonce = nonce();
        if self.rank == 0 { self.lead(&nonce) } else { self.follow(&nonce) }
    }

    fn lead(&self, nonce: &str) -> Result<Met, C10dError> {
        let round = self.store.prefixed(nonce)?;
        self.store.set(ROUND, nonce)?;
        let others = 1..self.size;
        for rank in others.clone() {
            if !matches!(self.wait(&round, nonce, &answer(rank))?, Waited::Set) {
                return Ok(self.give_up(&round, missing_ranks(&round, &answer, 1, self.size)?));
            }
        }
        // Acknowledge only now: a rank may have answered long ago, and has to confirm that it is still alive.
        let mut answers = Vec::with_capacity(self.size);
        for rank in others.clone() {
            answers.push(acknowledged_answer(&round, rank)?);
        }
        for (rank, answered) in others.clone().zip(&mut answers) {
            loop {
                match round.wait(&confirmed(rank, answered), POLL_INTERVAL) {
                    Ok(()) => break,
                    Err(error) if !error.timed_out => return Err(error),
                    Err(_) if (self.left)().is_zero() => return Ok(self.give_up(&round, vec![rank])),
                    // The rank may have been restarted meanwhile.
                    Err(_) => *answered = acknowledged_answer(&round, rank)?,
                }
            }
        }
        for (rank, answered) in others.zip(&answers) {
            round.set(&member(rank), answered)?;
        }
        round.set(OUTCOME, ALL)?;
        Ok(Met::All(nonce.to_owned()))
    }

    fn follow(&self, own_nonce: &str) -> Result<Met, C10dError> {
        // The result if rank 0 begins no new round.
        let (mut assessment, mut known) = (Met::Missing(vec![0]), None);
        while let Some((nonce, round)) = self.next_round(known.as_deref())? {
            known = Some(nonce.clone());
            if round.has(&[OUTCOME.to_owned()])? {
                if self.hosted_by_first {
                    return Ok(Met::Taken);
                }
                // The round belongs to an earlier start.
                continue;
            }
            round.set(&answer(self.rank), own_nonce)?;
            let mut waited = self.wait(&round, &nonce, &acknowledgement(self.rank, own_nonce))?;
            let acknowledged = matches!(waited, Waited::Set);
            if acknowledged {
                round.set(&confirmed(self.rank, own_nonce), "")?;
                waited = self.wait(&round, &nonce, OUTCOME)?;
            }
            match waited {
                Waited::Set | Waited::Over => {
                    assessment = self.assessment(&round, &nonce, own_nonce)?;
                    if acknowledged || self.hosted_by_first {
                        return Ok(assessment);
                    }
                }
                Waited::TimedOut => return Ok(self.give_up(&round, self.unanswered(&round)?)),
                Waited::Stale => {}
            }
        }
        Ok(assessment)
    }

    /// Returns what the outcome of a round means for this rank.
    fn assessment(&self, round: &Store, nonce: &str, own_nonce: &str) -> Result<Met, C10dError> {
        if round.get(OUTCOME)? != ALL {
            return Ok(self.give_up(round, self.unanswered(round)?));
        }
        let member = round.get(&member(self.rank))? == own_nonce;
        Ok(if member { Met::All(nonce.to_owned()) } else { Met::Taken })
    }

    /// Waits until rank 0 begins another round than `known`, and returns it; `None` if there is none in time.
    fn next_round(&self, known: Option<&str>) -> Result<Option<(String, Store)>, C10dError> {
        loop {
            let left = (self.left)();
            match self.store.wait(ROUND, left.min(POLL_INTERVAL)) {
                Ok(()) => {
                    let nonce = self.store.get(ROUND)?;
                    if known != Some(nonce.as_str()) {
                        return self.store.prefixed(&nonce).map(|round| Some((nonce, round)));
                    }
                    std::thread::sleep(left.min(POLL_INTERVAL));
                }
                Err(error) if !error.timed_out => return Err(error),
                Err(_) => {}
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Waits for a key of a round, until the round ends.
    fn wait(&self, round: &Store, nonce: &str, key: &str) -> Result<Waited, C10dError> {
        loop {
            let left = (self.left)();
            match round.wait(key, left.min(POLL_INTERVAL)) {
                Ok(()) => return Ok(Waited::Set),
                Err(error) if !error.timed_out => return Err(error),
                Err(_) if self.store.get(ROUND)? != nonce => return Ok(Waited::Stale),
                Err(_) if round.has(&[OUTCOME.to_owned()])? => return Ok(Waited::Over),
                Err(_) if left.is_zero() => return Ok(Waited::TimedOut),
                Err(_) => {}
            }
        }
    }

    /// Returns the ranks that have not answered; rank 0 if all have, since it has not acknowledged them.
    fn unanswered(&self, round: &Store) -> Result<Vec<usize>, C10dError> {
        let missing = missing_ranks(round, &answer, 1, self.size)?;
        Ok(if missing.is_empty() { vec![0] } else { missing })
    }

    /// Ends the round for the ranks that still wait. The host of the store stays until they know.
    fn give_up(&self, round: &Store, missing: Vec<usize>) -> Met {
        let (others, patience) = (self.size - missing.len(), Duration::from_millis(500));
        let hosts_store = self.hosted_by_first && self.rank == 0;
        // The missing ranks are already known, so losing the store does not matter.
        let _ = round.set(OUTCOME, NOT_ALL).and_then(|()| acknowledge(round, others, hosts_store, patience));
        Met::Missing(missing)
    }
}

/// Acknowledges the answer of a rank, and returns it.
fn acknowledged_answer(round: &Store, rank: usize) -> Result<String, C10dError> {
    let answered = round.get(&answer(rank))?;
    round.set(&acknowledgement(rank, &answered), "")?;
    Ok(answered)
}

fn answer(rank: usize) -> String {
    format!("answer/{rank}")
}

fn acknowledgement(rank: usize, nonce: &str) -> String {
    format!("acknowledgement/{rank}/{nonce}")
}

fn confirmed(rank: usize, nonce: &str) -> String {
    format!("confirmed/{rank}/{nonce}")
}

fn member(rank: usize) -> String {
    format!("member/{rank}")
}

/// Returns a text that is unique among all processes and starts.
fn nonce() -> String {
    // The hasher's keys are random numbers of the system.
    let random = RandomState::new();
    format!("{:016x}{:016x}", random.hash_one(std::process::id()), random.hash_one(SystemTime::now()))
}

#[cfg(test)]
#[path = "handshake/tests.rs"]
mod tests;
