//! The speed of a run, which depends on the clock and therefore never enters `events.jsonl`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The speed of a run since the last interval: a line of `timing.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// The number of updates so far.
    pub step: u64,
    /// Training samples per second; both views of an unlabelled sample count as one.
    pub images_per_second: f64,
    /// The share of the time that the engine spent waiting for data.
    pub waiting: f64,
    /// Seconds since this process started training.
    pub elapsed_seconds: f64,
    /// Estimated seconds until the last step, from the mean pace of this process. After its first step, that step is
    /// excluded, because libtorch warms up in it. `None` before the first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_seconds: Option<f64>,
    /// The communication with the other processes of the run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Exchange>,
}

/// The communication of this process with the other processes of its run since the last interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The number of bytes that it sent; `StepTraffic` of calmix-train has the formula.
    pub sent_bytes: u64,
    /// The share of the time that it spent sending, and waiting for the others.
    pub waiting: f64,
    /// The collective operations of its training steps.
    pub collectives: Collectives,
}

/// A snapshot of the clocks and counters of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// The number of updates so far, including those of earlier processes.
    pub step: u64,
    /// The number of samples that this process has trained on.
    pub images: u64,
    /// The time since training started.
    pub elapsed: Duration,
    /// The part of that time spent waiting for data.
    pub waited: Duration,
    /// The bytes sent to the other processes of the run, if any, the time that this took, and the collective operations.
    pub exchanged: Option<(u64, Duration, Collectives)>,
}

/// Computes the pace from readings. It does not read a clock itself.
#[derive(Debug, Clone)]
pub struct Pacer {
    first_step: u64,
    last_step: u64,
    before: Reading,
    /// The duration of the first step.
    warm_up: Option<Duration>,
}

impl Pacer {
    /// Makes a pacer for a process that starts after `first_step` updates and ends after `last_step`.
    pub fn new(first_step: u64, last_step: u64) -> Self {
        let before = Reading { step: first_step, ..Reading::default() };
        Self { first_step, last_step, before, warm_up: None }
    }

    /// Records the time after a step; only the first one is kept.
    pub fn step(&mut self, elapsed: Duration) {
        self.warm_up.get_or_insert(elapsed);
    }

    /// Computes the pace since the previous reading. Rates are zero if no time has passed.
    pub fn pace(&mut self, now: Reading) -> Pace {
        let seconds = now.elapsed.saturating_sub(self.before.elapsed).as_secs_f64();
        let waited = now.waited.saturating_sub(self.before.waited).as_secs_f64();
        let images = now.images.saturating_sub(self.before.images) as f64;
        let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let processes = now.exchanged.map(|(sent, took, collectives)| {
            let before = self.before.exchanged.unwrap_or_default();
            let waited = took.saturating_sub(before.1).as_secs_f64();
            Exchange {
                sent_bytes: sent.saturating_sub(before.0),
                waiting: per_second(waited).min(1.0),
                collectives: collectives.since(before.2),
            }
        });
        self.before = now;
        let made = now.step.saturating_sub(self.first_step);
        let (made, elapsed) = match self.warm_up {
            Some(warm_up) if made > 1 => (made - 1, now.elapsed.saturating_sub(warm_up)),
            _ => (made, now.elapsed),
        };
        let left = self.last_step.saturating_sub(now.step) as f64;
        Pace {
            step: now.step,
            images_per_second: per_second(images),
            waiting: per_second(waited).min(1.0),
            elapsed_seconds: now.elapsed.as_secs_f64(),
            left_seconds: (made > 0).then(|| left * elapsed.as_secs_f64() / made as f64),
            processes,
        }
    }
}

/// The number of collective operations in training steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collectives {
    /// The number of all-gathers over all processes.
    pub world_gathers: u64,
    /// The number of sums over all processes, each a scatter and a gather.
    pub sums: u64,
    /// The number of all-gathers within this process's groups.
    pub group_gathers: u64,
    /// The number of all-to-all operations within this process's groups.
    pub exchanges: u64,
}

impl Collectives {
    /// Returns the difference to an earlier count.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            world_gathers: self.world_gathers.saturating_sub(before.world_gathers),
            sums: self.sums.saturating_sub(before.sums),
            group_gathers: self.group_gathers.saturating_sub(before.group_gathers),
            exchanges: self.exchanges.saturating_sub(before.exchanges),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_interval_and_the_rest_is_of_the_whole() {
        let mut pacer = Pacer::new(100, 400);
        let seconds = Duration::from_secs;
        let gathers = |count| Collectives { world_gathers: count, ..Collectives::default() };
        let idle = pacer.pace(Reading { step: 100, ..Reading::default() });
        assert_eq!((idle.images_per_second, idle.waiting, idle.left_seconds), (0.0, 0.0, None));
        pacer.pace(Reading {
            step: 150,
            images: 500,
            elapsed: seconds(50),
            waited: seconds(40),
            exchanged: Some((700, seconds(5), gathers(50))),
        });
        let pace = pacer.pace(Reading {
            step: 200,
            images: 2500,
            elapsed: seconds(70),
            waited: seconds(45),
            exchanged: Some((1000, seconds(10), gathers(100))),
        });
        assert_eq!((pace.images_per_second, pace.waiting), (100.0, 0.25));
        assert_eq!(
            pace.processes,
            Some(Exchange { sent_bytes: 300, waiting: 0.25, collectives: gathers(50) })
        );
        assert_eq!(idle.processes, None);
        assert_eq!((pace.elapsed_seconds, pace.left_seconds), (70.0, Some(140.0)));
    }

    #[test]
    fn the_first_step_does_not_count_once_there_are_others() {
        let mut pacer = Pacer::new(10, 20);
        let reading = |step, elapsed| Reading { step, elapsed, ..Reading::default() };
        pacer.step(Duration::from_secs(5));
        assert_eq!(pacer.pace(reading(11, Duration::from_secs(5))).left_seconds, Some(45.0));
        pacer.step(Duration::from_secs(6));
        assert_eq!(pacer.pace(reading(12, Duration::from_secs(6))).left_seconds, Some(8.0));
    }
}
