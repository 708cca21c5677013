//! The signals that processes exchange in each step: requests to stop, and the working times that reveal a straggler.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use calmix_dist::ProcessGroup;
use calmix_run::events::Note;

use super::sync::Heartbeat;

/// The signals of one process, from step to step.
pub(crate) struct StepSignals<'a> {
    stop: &'a AtomicBool,
    /// Whether a heartbeat of the last step contained a request to stop.
    stop_received: bool,
    /// The duration of the last step without the time spent waiting for other processes.
    busy: Duration,
    stragglers: StragglerDetector,
}

impl<'a> StepSignals<'a> {
    /// Creates the signals before the first step. `stop` becomes true when this process receives a request to stop.
    pub(crate) fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, stop_received: false, busy: Duration::ZERO, stragglers: StragglerDetector::default() }
    }

    pub(crate) fn heartbeat(&self) -> Heartbeat {
        Heartbeat { stop: self.stop.load(Ordering::Relaxed), busy: self.busy, ..Heartbeat::default() }
    }

    /// Reads the heartbeats of all processes, whose micro-batches are `micro_batches`; returns a warning about a straggler, if
    /// any.
    pub(crate) fn read(&mut self, heartbeats: &[Heartbeat], micro_batches: &[Range<usize>]) -> Option<Note> {
        self.stop_received |= heartbeats.iter().any(|beat| beat.stop);
        self.stragglers.update(heartbeats, micro_batches)
    }

    /// Sets the time for which this process worked on the last step.
    pub(crate) fn set_busy(&mut self, busy: Duration) {
        self.busy = busy;
    }

    /// Returns whether the run has to stop before the next step. Several processes stop one step after the heartbeats with the
    /// request.
    pub(crate) fn stop_requested(&self, processes: &ProcessGroup) -> bool {
        if processes.size() == 1 { self.stop.load(Ordering::Relaxed) } else { self.stop_received }
    }

    /// Returns the flag that becomes true when this process receives a request to stop.
    pub(crate) fn stop(&self) -> &'a AtomicBool {
        self.stop
    }
}

/// A detector of a process that all others wait for.
#[derive(Debug, Clone, Default)]
pub(crate) struct StragglerDetector {
    sums: Vec<Duration>,
    steps: u32,
    reported: Option<usize>,
}

impl StragglerDetector {
    /// The number of steps over which working times are compared.
    const WINDOW: u32 = 10;

    /// Adds the working times of all processes, whose micro-batches are `micro_batches`. Once per window, returns a warning about
    /// a process that takes more than 1.5 times as long per micro-batch as the others.
    pub(crate) fn update(
        &mut self,
        heartbeats: &[Heartbeat],
        micro_batches: &[Range<usize>],
    ) -> Option<Note> {
        self.sums.resize(heartbeats.len(), Duration::ZERO);
        for ((sum, beat), micro_batches) in self.sums.iter_mut().zip(heartbeats).zip(micro_batches) {
            // Divide by the number of micro-batches, so that a process with one more does not count as slow.
            *sum += beat.busy / u32::try_from(micro_batches.len().max(1)).unwrap_or(u32::MAX);
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
        let median = *others.get(others.len() / 2)?;
        let took = *sums.get(slowest)?;
        let is_slow =
            took > median * 3 / 2 && took.saturating_sub(median) > Duration::from_millis(10) * Self::WINDOW;
        let is_new = is_slow && self.reported != Some(slowest);
        self.reported = is_slow.then_some(slowest);
        is_new.then(|| Note {
            step: heartbeats.first().map_or(0, |beat| beat.step),
            text: format!(
                "all ranks wait for rank {slowest}: it takes {} ms per micro-batch and step, the others {} ms",
                (took / Self::WINDOW).as_millis(),
                (median / Self::WINDOW).as_millis()
            ),
            hint: "check what else runs on its machine, and check its disk and network".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(busy: u64) -> Heartbeat {
        Heartbeat { busy: Duration::from_millis(busy), ..Heartbeat::default() }
    }

    #[test]
    fn straggler_is_named_once_within_twenty_steps() {
        let mut detector = StragglerDetector::default();
        let mut beats = vec![beat(100); 4];
        let mut update = |beats: &[Heartbeat], n: usize| -> Vec<String> {
            (0..n)
                .filter_map(|_| detector.update(beats, &[0..1, 1..2, 2..3, 3..4]))
                .map(|note| note.text)
                .collect()
        };
        assert!(update(&beats, 50).is_empty());
        beats[3].busy += Duration::from_millis(300);
        let notes = update(&beats, 20);
        assert_eq!(
            notes,
            ["all ranks wait for rank 3: it takes 400 ms per micro-batch and step, the others 100 ms"]
        );
        assert!(update(&beats, 100).is_empty());
        beats[3] = beat(100);
        assert!(update(&beats, 20).is_empty());
        beats[0].busy += Duration::from_millis(300);
        assert_eq!(update(&beats, 20).len(), 1);
    }

    #[test]
    fn process_with_more_micro_batches_is_not_a_straggler() {
        let mut detector = StragglerDetector::default();
        let beats = [beat(100), beat(100), beat(200)];
        assert!((0..50).all(|_| detector.update(&beats, &[0..1, 1..2, 2..4]).is_none()));
        assert_eq!((0..20).filter(|_| detector.update(&beats, &[0..1, 1..2, 2..3]).is_some()).count(), 1);
    }
}
