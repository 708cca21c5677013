//! What a step takes from an order.

use super::Order;

/// An order that every step takes rows from: step s takes the s-th run of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feed {
    /// The order of the samples.
    pub order: Order,
    /// How many of them a step takes: all labelled rows of the step, or the unlabelled rows of one shard.
    pub rows: u64,
}

impl Feed {
    /// The position in the order of a row of a step.
    ///
    /// After 2⁶⁴ positions the order begins again.
    pub fn position(self, step: u64, row: u64) -> u64 {
        step.wrapping_mul(self.rows).wrapping_add(row)
    }
}
