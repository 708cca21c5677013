//! What a step takes from an order.

use std::ops::Range;

use super::{Cursor, Order, Visit};

/// An order that every step takes rows from: step s takes the s-th run of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feed {
    /// The order of the samples.
    pub order: Order,
    /// How many of them a step takes: all labelled rows of the step, or the unlabelled rows of one shard.
    pub rows: u64,
}

impl Feed {
    /// All visits of a step, row by row.
    pub fn step(self, step: u64) -> FeedVisits {
        self.visits(step, 0..self.rows)
    }

    /// The visits of some rows of a step.
    pub fn visits(self, step: u64, rows: Range<u64>) -> FeedVisits {
        FeedVisits { feed: self, cursor: self.order.cursor(), step, rows }
    }

    /// The position in the order of a row of a step.
    ///
    /// After 2⁶⁴ positions the order begins again.
    pub fn position(self, step: u64, row: u64) -> u64 {
        step.wrapping_mul(self.rows).wrapping_add(row)
    }
}

/// The visits of consecutive rows.
#[derive(Debug, Clone)]
pub struct FeedVisits {
    feed: Feed,
    cursor: Cursor,
    step: u64,
    rows: Range<u64>,
}

impl Iterator for FeedVisits {
    type Item = Visit;

    fn next(&mut self) -> Option<Visit> {
        let row = self.rows.next()?;
        Some(self.cursor.at(self.feed.position(self.step, row)))
    }
}
