//! The rows that a step takes from an order.

use super::Order;

/// An order from which every step takes the next rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feed {
    /// The order of the samples.
    pub order: Order,
    /// The number of rows per step: all labelled rows of the step, or the unlabelled rows of one shard.
    pub rows: u64,
}

impl Feed {
    /// Returns the position in the order of a row of a step.
    ///
    /// After 2⁶⁴ positions the order begins again.
    pub fn position(self, step: u64, row: u64) -> u64 {
        step.wrapping_mul(self.rows).wrapping_add(row)
    }
}
