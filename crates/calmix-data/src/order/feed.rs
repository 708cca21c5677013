//! What a step takes from a stream.

use std::ops::Range;

use super::{Cursor, Order, Shard, Sharding, Visit};

/// A stream that every step takes its rows from: step s takes the s-th run of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feed {
    /// The order of its samples.
    pub order: Order,
    /// How many of them a group takes in a step: B labelled ones, or μB unlabelled ones.
    pub batch: u32,
    /// How a step is cut.
    pub sharding: Sharding,
}

impl Feed {
    /// All visits of a step, row by row.
    pub fn step(self, step: u64) -> Visits {
        self.visits(step, 0..self.sharding.rows_per_step(self.batch))
    }

    /// The visits of one shard of a step, row by row.
    pub fn shard(self, step: u64, shard: Shard) -> Visits {
        self.visits(step, self.sharding.rows(self.batch, shard))
    }

    /// The position in the stream of a row of a step.
    ///
    /// After 2⁶⁴ positions the stream begins again.
    pub fn position(self, step: u64, row: u64) -> u64 {
        step.wrapping_mul(self.sharding.rows_per_step(self.batch)).wrapping_add(row)
    }

    fn visits(self, step: u64, rows: Range<u64>) -> Visits {
        Visits { feed: self, cursor: self.order.cursor(), step, rows }
    }
}

/// The visits of consecutive rows.
#[derive(Debug, Clone)]
pub struct Visits {
    feed: Feed,
    cursor: Cursor,
    step: u64,
    rows: Range<u64>,
}

impl Iterator for Visits {
    type Item = Visit;

    fn next(&mut self) -> Option<Visit> {
        let row = self.rows.next()?;
        Some(self.cursor.at(self.feed.position(self.step, row)))
    }
}
