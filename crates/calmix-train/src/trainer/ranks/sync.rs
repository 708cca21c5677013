//! How the processes of a run stay in step: they check that they train the same run, pass on a request to
//! stop, notice weights that diverge, and find the straggler that all others wait for.

use std::time::Duration;

use calmix_data::loader::{SkippedSample, TrainBatch};
use calmix_dist::ProcessGroup;
use calmix_run::events::Note;
use serde::{Deserialize, Serialize};

use super::collect_results::{all_gather_results, unreadable};
use crate::trainer::error::TrainError;

/// What must be the same on every process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunFingerprint {
    /// The version of calmix, and that of libtorch.
    pub(crate) version: String,
    /// The hash of the keys of the recipe that must not differ.
    pub(crate) recipe: String,
    /// The fingerprint of the dataset.
    pub(crate) dataset: String,
    /// The hash of the split.
    pub(crate) labels: String,
}

impl RunFingerprint {
    /// Refuses processes that would train something else, or that cannot even open what they should train.
    pub(crate) fn check(own: Result<Self, TrainError>, processes: &ProcessGroup) -> Result<(), TrainError> {
        same_run(&all_gather_results(processes, own)?)
    }
}

/// Names the first rank whose fingerprint is not that of rank 0.
fn same_run(all: &[RunFingerprint]) -> Result<(), TrainError> {
    let Some(first) = all.first() else { return Ok(()) };
    for (process, other) in all.iter().enumerate() {
        let pairs = [
            ("version", &first.version, &other.version),
            ("recipe", &first.recipe, &other.recipe),
            ("dataset", &first.dataset, &other.dataset),
            ("set of labels", &first.labels, &other.labels),
        ];
        if let Some((what, here, there)) = pairs.into_iter().find(|(_, here, there)| here != there) {
            let (here, there) = (here.clone(), there.clone());
            return Err(TrainError::DifferentRun { process, what, here, there });
        }
    }
    Ok(())
}

/// What every process sends to the others once per step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Heartbeat {
    /// The step that it starts next.
    pub(crate) step: u64,
    /// Whether it received a request to stop.
    pub(crate) stop: bool,
    /// Whether it has no batch for the step, so that no rank can take the step.
    pub(crate) lost: bool,
    /// How long it worked on the previous step, without the time it waited for others.
    pub(crate) busy: Duration,
    /// A checksum of its weights; zero on steps where none is computed.
    pub(crate) weights: u64,
}

impl Heartbeat {
    pub(crate) const BYTES: usize = 25;

    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let busy = u64::try_from(self.busy.as_micros()).unwrap_or(u64::MAX);
        let flags = u64::from(self.stop) | u64::from(self.lost) << 1;
        for (to, number) in bytes.chunks_mut(8).zip([self.step, busy, self.weights, flags]) {
            to.iter_mut().zip(number.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        }
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let [step, busy, weights] = <[[u8; 8]; 3]>::try_from(numbers).ok()?.map(u64::from_le_bytes);
        let flag = |bit: u8| Some(rest.first()? >> bit & 1 == 1);
        Some(Self { step, stop: flag(0)?, lost: flag(1)?, busy: Duration::from_micros(busy), weights })
    }
}

/// Checks that all processes are at the same step with the same weights, and names those that are not.
pub(crate) fn check_divergence(heartbeats: &[Heartbeat]) -> Result<(), TrainError> {
    for (what, of) in
        [("step", (|beat| beat.step) as fn(&Heartbeat) -> u64), ("weights", |beat| beat.weights)]
    {
        let values: Vec<u64> = heartbeats.iter().map(of).collect();
        let usual = most_common(&values);
        let odd: Vec<usize> =
            (0..values.len()).filter(|&process| values.get(process).copied() != usual).collect();
        if !odd.is_empty() {
            let step = heartbeats.first().map_or(0, |beat| beat.step);
            return Err(TrainError::Diverged { step, what, processes: odd, of: heartbeats.len() });
        }
    }
    Ok(())
}

/// The most frequent value; of several the first.
fn most_common(values: &[u64]) -> Option<u64> {
    let count = |value: u64| values.iter().filter(|&&other| other == value).count();
    let most = values.iter().map(|&value| count(value)).max()?;
    values.iter().copied().find(|&value| count(value) == most)
}

/// Finds the process that all others wait for.
#[derive(Debug, Clone, Default)]
pub(crate) struct StragglerDetector {
    sums: Vec<Duration>,
    steps: u32,
    named: Option<usize>,
}

impl StragglerDetector {
    /// Steps over which work is compared.
    const WINDOW: u32 = 10;

    /// Takes the working times of all processes and the number of shards that each runs; once per window, names one that takes
    /// more than 1.5 times as long for a shard as the others.
    pub(crate) fn update(&mut self, heartbeats: &[Heartbeat], shards: &[usize]) -> Option<Note> {
        self.sums.resize(heartbeats.len(), Duration::ZERO);
        for ((sum, beat), &shards) in self.sums.iter_mut().zip(heartbeats).zip(shards) {
            // A process with one shard more is not slow.
            *sum += beat.busy / u32::try_from(shards.max(1)).unwrap_or(u32::MAX);
        }
        self.steps += 1;
        if self.steps < Self::WINDOW || heartbeats.len() < 2 {
            return None;
        }
        let sums = std::mem::take(&mut self.sums);
        self.steps = 0;
        let slowest = sums.iter().enumerate().max_by_key(|&(_, sum)| *sum).map(|(process, _)| process)?;
        let mut others: Vec<Duration> =
            sums.iter().enumerate().filter(|&(process, _)| process != slowest).map(|(_, &sum)| sum).collect();
        others.sort_unstable();
        let usual = *others.get(others.len() / 2)?;
        let took = *sums.get(slowest)?;
        let is_slow =
            took > usual * 3 / 2 && took.saturating_sub(usual) > Duration::from_millis(10) * Self::WINDOW;
        let news = is_slow && self.named != Some(slowest);
        self.named = is_slow.then_some(slowest);
        news.then(|| Note {
            step: heartbeats.first().map_or(0, |beat| beat.step),
            text: format!(
                "all ranks wait for rank {slowest}: it takes {} ms per shard and step, the others {} ms",
                (took / Self::WINDOW).as_millis(),
                (usual / Self::WINDOW).as_millis()
            ),
            hint: "check what else runs on its machine, and check its disk and network".to_owned(),
        })
    }
}

/// What processes found in the batch of a step, before anything is planned on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BatchStatus {
    /// The number of samples in the batch.
    pub(crate) seen: u64,
    /// Whether any output of the network was not finite.
    pub(crate) not_finite: bool,
    /// Corrupt samples that were replaced by others.
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

    /// The status that every process sends in each step: the number of samples, whether all is finite, and whether there
    /// are corrupt samples to report.
    pub(crate) fn short(&self) -> [u64; 3] {
        [self.seen, u64::from(self.not_finite), self.skipped.len() as u64]
    }

    /// Adds up the statuses of all processes. Where one has corrupt samples to report, which is rare, all exchange
    /// the details: one collective more.
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
        for (stop, lost) in [(true, false), (false, true)] {
            let said = Heartbeat { stop, lost, ..beat(1234) };
            assert_eq!(Heartbeat::read(&said.bytes()), Some(said));
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
    fn straggler_is_named_once_within_twenty_steps() {
        let mut detector = StragglerDetector::default();
        let mut beats = vec![beat(100); 4];
        let mut hear = |beats: &[Heartbeat], n: usize| -> Vec<String> {
            (0..n).filter_map(|_| detector.update(beats, &[1, 1, 1, 1])).map(|note| note.text).collect()
        };
        assert!(hear(&beats, 50).is_empty());
        beats[3].busy += Duration::from_millis(300);
        let notes = hear(&beats, 20);
        assert_eq!(
            notes,
            ["all ranks wait for rank 3: it takes 400 ms per shard and step, the others 100 ms"]
        );
        assert!(hear(&beats, 100).is_empty());
        beats[3] = beat(100);
        assert!(hear(&beats, 20).is_empty());
        beats[0].busy += Duration::from_millis(300);
        assert_eq!(hear(&beats, 20).len(), 1);
    }

    #[test]
    fn process_with_more_shards_is_not_a_straggler() {
        let mut detector = StragglerDetector::default();
        let beats = [beat(100), beat(100), beat(200)];
        assert!((0..50).all(|_| detector.update(&beats, &[1, 1, 2]).is_none()));
        assert_eq!((0..20).filter(|_| detector.update(&beats, &[1, 1, 1]).is_some()).count(), 1);
    }

    #[test]
    fn different_run_is_refused_by_what_differs() {
        let own = RunFingerprint {
            version: "1".into(),
            recipe: "a".into(),
            dataset: "b".into(),
            labels: "c".into(),
        };
        assert!(same_run(&[own.clone(), own.clone()]).is_ok());
        for (other, what) in [
            (RunFingerprint { version: "2".into(), ..own.clone() }, "version"),
            (RunFingerprint { recipe: "2".into(), ..own.clone() }, "recipe"),
            (RunFingerprint { dataset: "2".into(), ..own.clone() }, "dataset"),
            (RunFingerprint { labels: "2".into(), ..own.clone() }, "set of labels"),
        ] {
            let error = same_run(&[own.clone(), own.clone(), other]).unwrap_err().to_string();
            assert!(error.contains("rank 2") && error.contains(what), "{error}");
        }
    }
}
