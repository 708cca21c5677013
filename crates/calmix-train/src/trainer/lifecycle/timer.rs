//! The pace of a run: its clocks and counters, read where its events are written.

use std::time::{Duration, Instant};

use calmix_data::loader::Counters;
use calmix_run::collectives::Collectives;
use calmix_run::events::{Pace, Pacer, Reading};

use crate::trainer::ranks::layout::ParallelLayout;

/// Reads the clocks and counters of a run.
pub(crate) struct Timer {
    began: Instant,
    pacer: Pacer,
    exchanged: (u64, Duration, Collectives),
    first_step: u64,
    /// When the pace between two intervals is due next.
    next_estimate: Duration,
}

/// The time between two paces within an interval.
const ESTIMATES: Duration = Duration::from_secs(1);

impl Timer {
    pub(crate) fn new(layout: &ParallelLayout, first_step: u64, last_step: u64) -> Self {
        let pacer = Pacer::new(first_step, last_step);
        let (began, exchanged) = (Instant::now(), exchanged(layout));
        Self { began, pacer, exchanged, first_step, next_estimate: ESTIMATES }
    }

    /// The pace since the last interval.
    pub(crate) fn pace(&mut self, step: u64, layout: &ParallelLayout, counters: Counters) -> Pace {
        let reading = self.reading(step, layout, counters);
        self.next_estimate = reading.elapsed + ESTIMATES;
        self.pacer.step(reading.elapsed);
        self.pacer.pace(reading)
    }

    /// The pace since the last interval, from time to time. The first step alone is not representative, since libtorch warms
    /// up in it.
    pub(crate) fn current_pace(
        &mut self,
        step: u64,
        layout: &ParallelLayout,
        counters: Counters,
    ) -> Option<Pace> {
        let reading = self.reading(step, layout, counters);
        self.pacer.step(reading.elapsed);
        if step < self.first_step + 2 || reading.elapsed < self.next_estimate {
            return None;
        }
        self.next_estimate = reading.elapsed + ESTIMATES;
        // A copy: the interval still begins where the last one ended.
        Some(self.pacer.clone().pace(reading))
    }

    fn reading(&self, step: u64, layout: &ParallelLayout, counters: Counters) -> Reading {
        let (now, before) = (exchanged(layout), self.exchanged);
        let since = (now.0 - before.0, now.1.saturating_sub(before.1), now.2.since(before.2));
        Reading {
            step,
            // Of all processes: a shard has as many images whoever runs it.
            images: counters.images * layout.all() as u64 / layout.local().len().max(1) as u64,
            elapsed: self.began.elapsed(),
            waited: counters.waited,
            exchanged: (layout.processes.size() > 1).then_some(since),
        }
    }
}

/// The communication of this process with the others: bytes sent, time, collectives.
fn exchanged(layout: &ParallelLayout) -> (u64, Duration, Collectives) {
    (layout.processes.sent(), layout.processes.waited(), layout.collectives())
}
