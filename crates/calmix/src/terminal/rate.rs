//! The rate of prediction and the remaining time.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use crate::output::format::{grouped, rough_time};
use crate::terminal;

/// Shows the rate on standard error: on a terminal one line that is redrawn, otherwise a line every ten seconds.
#[derive(Debug)]
pub struct Rate {
    /// The singular of the items, such as `image`.
    what: &'static str,
    /// The total number of items; `None` if unknown.
    total: Option<u64>,
    /// The number of items that were done before this process started.
    before: u64,
    done: u64,
    started: Instant,
    shown: Instant,
    every: Duration,
}

impl Rate {
    /// Starts to measure; `what` is the singular of the items, such as `image`.
    pub fn new(total: Option<u64>, before: u64, what: &'static str) -> Self {
        // A redrawn line would mix with rows on the same terminal.
        let every = match (io::stderr().is_terminal(), io::stdout().is_terminal()) {
            (true, false) => Duration::from_millis(200),
            (true, true) => Duration::MAX,
            (false, _) => Duration::from_secs(10),
        };
        let now = Instant::now();
        Self { what, total, before, done: 0, started: now, shown: now, every }
    }

    /// Starts to measure for a command that writes nothing to standard output meanwhile.
    pub fn of_silent_command(what: &'static str) -> Self {
        let seconds = if io::stderr().is_terminal() { 0.2 } else { 10.0 };
        Self { every: Duration::from_secs_f64(seconds), ..Self::new(None, 0, what) }
    }

    /// Counts `before` items as done before this process started.
    #[must_use]
    pub fn after(self, before: u64) -> Self {
        Self { before, ..self }
    }

    /// Sets the number of items that are done, and their total.
    pub fn show(&mut self, done: u64, total: Option<u64>) {
        self.total = total;
        // Start again when the count drops: vectors are read twice, once to check them and once to fill the table.
        if done < self.done / 2 {
            self.done = 0;
            self.started = Instant::now();
        }
        self.add(done.saturating_sub(self.done));
    }

    /// Adds items that are done.
    pub fn add(&mut self, images: u64) {
        self.done += images;
        if self.shown.elapsed() >= self.every {
            self.shown = Instant::now();
            terminal::status_in_place(&self.line());
        }
    }

    /// Returns the items per second of this process.
    pub fn per_second(&self) -> f64 {
        self.done as f64 / self.started.elapsed().as_secs_f64().max(1e-9)
    }

    fn line(&self) -> String {
        let done = self.before + self.done;
        let of = self.total.map(|total| format!(" of {}", grouped(total))).unwrap_or_default();
        let rate = self.per_second();
        let left = self.total.map(|total| total.saturating_sub(done) as f64 / rate.max(1e-9));
        let left = left.map(|left| format!(", {} left", rough_time(left))).unwrap_or_default();
        let what = self.what;
        format!("{}{of} {what}s, {} {what}s/s{left}", grouped(done), grouped(rate.round() as u64))
    }
}
