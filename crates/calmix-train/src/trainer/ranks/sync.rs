//! Keeping the processes of a run in step: they check that they train the same run, and detect weights that diverge.

use std::time::Duration;

use calmix_data::loader::{SkippedSample, TrainBatch};
use calmix_dist::ProcessGroup;
use serde::{Deserialize, Serialize};

use super::collect_results::{all_gather_results, unreadable};
use crate::trainer::error::TrainError;

/// The properties of a run that must be the same on every process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunFingerprint {
    /// The versions of calmix and of libtorch.
    pub(crate) version: String,
    /// The hash of the recipe's keys that must not differ.
    pub(crate) recipe: String,
    pub(crate) dataset: String,
    pub(crate) labels: String,
}

impl RunFingerprint {
    /// Fails on all processes if any of them has another run, or could not open its own.
    pub(crate) fn check(local: Result<Self, TrainError>, processes: &ProcessGroup) -> Result<(), TrainError> {
        check_equal(&all_gather_results(processes, local)?)
    }
}

/// Checks that all fingerprints equal that of rank 0, and names the first rank that differs.
fn check_equal(all: &[RunFingerprint]) -> Result<(), TrainError> {
    let Some(first) = all.first() else { return Ok(()) };
    for (process, other) in all.iter().enumerate() {
        let pairs = [
            ("version", &first.version, &other.version),
            ("recipe", &first.recipe, &other.recipe),
            ("dataset", &first.dataset, &other.dataset),
            ("set of labels", &first.labels, &other.labels),
        ];
        if let Some((what, expected, found)) = pairs.into_iter().find(|(_, first, other)| first != other) {
            let (expected, found) = (expected.clone(), found.clone());
            return Err(TrainError::DifferentRun { process, what, expected, found });
        }
    }
    Ok(())
}

/// The signal that every process sends to the others once per step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Heartbeat {
    /// The next step of the process.
    pub(crate) step: u64,
    /// Whether it received a request to stop.
    pub(crate) stop: bool,
    /// Whether it has no batch for the step, so that no process can take the step.
    pub(crate) no_batch: bool,
    /// The time it worked on the previous step, without waiting for others.
    pub(crate) busy: Duration,
    /// The checksum of its weights; zero in steps without a check.
    pub(crate) weights: u64,
}

impl Heartbeat {
    pub(crate) const BYTES: usize = 25;

    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let busy = u64::try_from(self.busy.as_micros()).unwrap_or(u64::MAX);
        let flags = u64::from(self.stop) | u64::from(self.no_batch) << 1;
        for (to, number) in bytes.chunks_mut(8).zip([self.step, busy, self.weights, flags]) {
            to.iter_mut().zip(number.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        }
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let [step, busy, weights] = <[[u8; 8]; 3]>::try_from(numbers).ok()?.map(u64::from_le_bytes);
        let flag = |bit: u8| Some(rest.first()? >> bit & 1 == 1);
        Some(Self { step, stop: flag(0)?, no_batch: flag(1)?, busy: Duration::from_micros(busy), weights })
    }
}

/// Checks that all processes are at the same step with the same weights, and names those that differ from the majority.
pub(crate) fn check_divergence(heartbeats: &[Heartbeat]) -> Result<(), TrainError> {
    for (what, of) in
        [("step", (|beat| beat.step) as fn(&Heartbeat) -> u64), ("weights", |beat| beat.weights)]
    {
        let values: Vec<u64> = heartbeats.iter().map(of).collect();
        let majority = most_common(&values);
        let diverged: Vec<usize> =
            (0..values.len()).filter(|&process| values.get(process).copied() != majority).collect();
        if !diverged.is_empty() {
            let step = heartbeats.first().map_or(0, |beat| beat.step);
            return Err(TrainError::Diverged { step, what, processes: diverged, of: heartbeats.len() });
        }
    }
    Ok(())
}

/// Returns the most frequent value; of equally frequent ones, the first.
fn most_common(values: &[u64]) -> Option<u64> {
    let count = |value: u64| values.iter().filter(|&&other| other == value).count();
    let max_count = values.iter().map(|&value| count(value)).max()?;
    values.iter().copied().find(|&value| count(value) == max_count)
}

/// The status of a step's batch, exchanged before planning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BatchStatus {
    /// The number of samples in the batch.
    pub(crate) seen: u64,
    /// Whether any output of the network was not finite.
    pub(crate) not_finite: bool,
    /// The corrupt samples that were replaced by others.
    pub(crate) skipped: Vec<(u64, String)>,
}

impl BatchStatus {
    pub(crate) fn of(batch: &TrainBatch, is_finite: bool) -> Self {
        Self {
            seen: (batch.labelled.ids.len() + batch.unlabelled.ids.len()) as u64,
            not_finite: !is_finite,
            skipped: batch
                .skipped
                .iter()
                .map(|SkippedSample { id, problem, .. }| (*id, problem.clone()))
                .collect(),
        }
    }

    /// Returns the fixed-size status that every process sends in each step: the number of samples, whether outputs were not
    /// finite, and whether there are corrupt samples to report.
    pub(crate) fn short(&self) -> [u64; 3] {
        [self.seen, u64::from(self.not_finite), self.skipped.len() as u64]
    }

    /// Adds up the statuses of all processes. If any of them has corrupt samples to report, which is rare, the details are
    /// exchanged in one more collective.
    pub(crate) fn add_up(&self, all: &[[u64; 3]], processes: &ProcessGroup) -> Result<Self, TrainError> {
        let mut sum = Self::default();
        for [seen, not_finite, _] in all {
            sum.seen += seen;
            sum.not_finite |= *not_finite != 0;
        }
        if all.iter().all(|[.., skipped]| *skipped == 0) {
            return Ok(sum);
        }
        let details = serde_json::to_vec(&self.skipped).map_err(unreadable)?;
        for details in processes.all_gather_bytes(&details)? {
            sum.skipped.extend(serde_json::from_slice::<Vec<_>>(&details).map_err(unreadable)?);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(busy: u64) -> Heartbeat {
        Heartbeat { step: 3, busy: Duration::from_millis(busy), weights: 7, ..Heartbeat::default() }
    }

    #[test]
    fn heartbeats_are_read_as_they_are_sent() {
        for (stop, no_batch) in [(true, false), (false, true)] {
            let sent = Heartbeat { stop, no_batch, ..beat(1234) };
            assert_eq!(Heartbeat::read(&sent.bytes()), Some(sent));
        }
        assert_eq!(Heartbeat::read(&[0; 3]), None);
    }

    #[test]
    fn divergence_names_the_rank() {
        let mut beats = vec![beat(1); 4];
        assert!(check_divergence(&beats).is_ok());
        beats[2].weights = 8;
        let error = check_divergence(&beats).unwrap_err().to_string();
        assert!(error.contains("rank 2 has diverged: its weights differ from the other 3 ranks"), "{error}");
        beats[2] = Heartbeat { step: 4, ..beat(1) };
        assert!(check_divergence(&beats).unwrap_err().to_string().contains("its step differs from"));
    }

    #[test]
    fn different_run_is_refused_by_what_differs() {
        let first = RunFingerprint {
            version: "1".into(),
            recipe: "a".into(),
            dataset: "b".into(),
            labels: "c".into(),
        };
        assert!(check_equal(&[first.clone(), first.clone()]).is_ok());
        for (other, what) in [
            (RunFingerprint { version: "2".into(), ..first.clone() }, "version"),
            (RunFingerprint { recipe: "2".into(), ..first.clone() }, "recipe"),
            (RunFingerprint { dataset: "2".into(), ..first.clone() }, "dataset"),
            (RunFingerprint { labels: "2".into(), ..first.clone() }, "set of labels"),
        ] {
            let error = check_equal(&[first.clone(), first.clone(), other]).unwrap_err().to_string();
            assert!(error.contains("rank 2") && error.contains(what), "{error}");
        }
    }
}
