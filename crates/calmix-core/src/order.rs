//! Which sample comes when: a pure function of the seed and the position, at any size.
//!
//! An order visits its samples epoch by epoch, each exactly once an epoch, in a way that is new every epoch.
//! The order is never written down: [`Order::at`] computes any place of it, so a billion samples need no array
//! and resuming needs no state. A step takes the next rows of it ([`Feed`]).
//!
//! Rows belong to logical shards ([`Sharding`](crate::sharding::Sharding)), and processes only choose which shards they run, so a batch never
//! depends on their number. The labelled stream has one order, whose rows are cut among the shards. Of the
//! unlabelled stream, every shard has samples of its own ([`Membership`]) and an order of its own over them.
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

mod feed;
mod membership;
mod permutation;

use std::num::NonZeroU64;

use crate::rng::{Domain, Seed};

pub use feed::Feed;
pub use membership::Membership;
use permutation::Permutation;

/// The order of the labelled stream, or of one shard of the unlabelled stream.
///
/// It is a stable format: a resumed run relies on it, and a test pins it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The seed of the run, or the one that [`Membership::order`] derives from it.
    pub seed: Seed,
    /// Which stream: [`Domain::LabelledOrder`] or [`Domain::UnlabelledOrder`].
    pub domain: Domain,
    /// How many samples are visited.
    pub len: NonZeroU64,
}

/// One visit of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// How many times all samples were visited before.
    pub epoch: u64,
    /// Which sample, below the length of the order: a place in the labelled stream, or a slot of a shard.
    pub index: u64,
}

impl Order {
    /// The visit at `position`, counted from the beginning of the run.
    ///
    /// Takes a constant time above 4,096 samples. A shorter order is shuffled whole for the answer; where many
    /// positions are asked for, a [`Cursor`] does so once an epoch.
    pub fn at(self, position: u64) -> Visit {
        self.cursor().at(position)
    }

    /// Answers for many positions, fastest where they lie in the same epoch.
    pub fn cursor(self) -> Cursor {
        Cursor { order: self, keyed: None }
    }

    fn permutation(self, epoch: u64) -> Permutation {
        // The length takes the place of the sample: streams of different lengths draw different orders.
        Permutation::draw(self.len, &mut self.seed.stream(self.domain, epoch, self.len.get()))
    }
}

/// An [`Order`] that remembers the epoch it was last asked about: what it answers is the same.
#[derive(Debug, Clone)]
pub struct Cursor {
    order: Order,
    keyed: Option<(u64, Permutation)>,
}

impl Cursor {
    /// The visit at `position`.
    pub fn at(&mut self, position: u64) -> Visit {
        let epoch = position / self.order.len;
        let place = position % self.order.len;
        let fresh = |order: Order| (epoch, order.permutation(epoch));
        let keyed = match self.keyed.take() {
            Some(keyed) if keyed.0 == epoch => keyed,
            _ => fresh(self.order),
        };
        let index = self.keyed.insert(keyed).1.at(place);
        Visit { epoch, index }
    }
}
