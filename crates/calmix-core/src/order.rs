//! The order of samples: a pure function of the seed and the position, for any number of samples.
//!
//! An order visits every sample exactly once per epoch, in a new order in every epoch. It is never stored: [`Order::at`] computes
//! any position of it, so a billion samples need no array and resuming needs no state. A step takes the next rows of it
//! ([`Feed`]).
//!
//! Rows belong to logical micro-batches ([`MicroBatching`](crate::micro_batching::MicroBatching)), and processes only choose
//! which micro-batches they run, so a batch never depends on their number. The labelled stream has one order, whose rows are cut
//! among the micro-batches. Of the unlabelled stream, every micro-batch has samples of its own ([`Membership`]) and an order of
//! its own over them. If samples lie in large files that are fetched whole, [`BlockMembership`] assigns them instead.
//!
//! ```
//! use std::num::NonZeroU64;
//! use calmix_core::rng::{Domain, Seed};
//! use calmix_core::order::Order;
//!
//! let len = NonZeroU64::new(1_000_000_000).unwrap();
//! let order = Order { seed: Seed(7), domain: Domain::UnlabelledOrder, len };
//! let visit = order.at(12_345_678_901);
//! assert_eq!(visit.epoch, 12);
//! assert!(visit.index < 1_000_000_000);
//! ```

mod blocks;
mod membership;
mod permutation;

use std::num::NonZeroU64;

use crate::rng::{Domain, Seed};

pub use blocks::{Block, BlockCursor, BlockMembership, BlockOrder};
pub use membership::Membership;
use permutation::Permutation;

/// The order of the labelled stream, or of one micro-batch of the unlabelled stream.
///
/// It is a stable format: a resumed run relies on it, and a test pins it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The seed of the run, or the one that [`Membership::order`] derives from it.
    pub seed: Seed,
    /// The stream: [`Domain::LabelledOrder`] or [`Domain::UnlabelledOrder`].
    pub domain: Domain,
    /// The number of samples per epoch.
    pub len: NonZeroU64,
}

/// One visit to a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// The number of complete epochs before this visit.
    pub epoch: u64,
    /// The sample, below the length of the order: a position in the labelled stream, or a slot of a micro-batch.
    pub index: u64,
}

impl Order {
    /// Returns the visit at `position`, counted from the beginning of the run.
    ///
    /// Takes constant time above 4,096 samples. A shorter order is shuffled completely for every call; for many
    /// positions, a [`Cursor`] does so once per epoch.
    pub fn at(self, position: u64) -> Visit {
        self.cursor().at(position)
    }

    /// Returns a cursor for many positions, which is fastest if they lie in the same epoch.
    pub fn cursor(self) -> Cursor {
        Cursor { order: self, cached: None }
    }

    fn permutation(self, epoch: u64) -> Permutation {
        // The length is used as the sample, so that streams of different lengths draw different orders.
        Permutation::draw(self.len, &mut self.seed.stream(self.domain, epoch, self.len.get()))
    }
}

/// An [`Order`] that caches the last epoch; its results are the same.
#[derive(Debug, Clone)]
pub struct Cursor {
    order: Order,
    /// The last epoch and its permutation.
    cached: Option<(u64, Permutation)>,
}

impl Cursor {
    /// Returns the visit at `position`.
    pub fn at(&mut self, position: u64) -> Visit {
        let epoch = position / self.order.len;
        let place = position % self.order.len;
        let (_, permutation) = match self.cached.take() {
            Some(cached) if cached.0 == epoch => self.cached.insert(cached),
            _ => self.cached.insert((epoch, self.order.permutation(epoch))),
        };
        let index = permutation.at(place);
        Visit { epoch, index }
    }
}

/// A stream of samples from which every step takes the next rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feed {
    /// The order of the samples.
    pub order: Order,
    /// The number of rows per step: all labelled rows of the step, or the unlabelled rows of one micro-batch.
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
