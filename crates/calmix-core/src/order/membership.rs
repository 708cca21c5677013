//! Which shard an unlabelled sample belongs to, and the order in which a shard draws its samples.
//!
//! A sample belongs to the same shard for the whole run. Only the process that runs the shard reads its samples, whatever
//! the number of processes, and it can keep their state in an array by slot.
//!
//! # Format
//!
//! A resumed run relies on it, and a test pins it.
//!
//! - Shard s of S has the samples P(s), P(s + S), P(s + 2S), … of the stream, in its slots 0, 1, 2, …. P is a
//!   permutation of the N samples of the stream, drawn from `seed.stream(Domain::Membership, 0, N)`; for a single
//!   shard it is the identity. It does not depend on S.
//! - Shard s visits its slots in the [`Order`] of the seed `seed.child(s)`; a single shard, in that of the seed itself.

use std::num::NonZeroU64;

use crate::rng::{Domain, Seed};

use super::Order;
use super::permutation::Permutation;

/// The assignment of the samples of the unlabelled stream to shards.
///
/// Takes constant memory, 8 KB at most.
///
/// ```
/// use std::num::NonZeroU64;
/// use calmix_core::rng::Seed;
/// use calmix_core::order::Membership;
///
/// let count = |n| NonZeroU64::new(n).unwrap();
/// let membership = Membership::new(Seed(7), count(1_000_000_000), count(64)).unwrap();
/// let order = membership.order(5).unwrap();
/// let slot = order.at(123_456_789).index;
/// assert!(slot < membership.len(5));
/// assert!(membership.sample(5, slot).unwrap() < 1_000_000_000);
/// ```
#[derive(Debug, Clone)]
pub struct Membership {
    seed: Seed,
    samples: NonZeroU64,
    shards: NonZeroU64,
    /// `None` for a single shard.
    permutation: Option<Permutation>,
}

impl Membership {
    /// Assigns the samples of a stream to the shards of a step; `None` if there are fewer samples than shards.
    pub fn new(seed: Seed, samples: NonZeroU64, shards: NonZeroU64) -> Option<Self> {
        if samples < shards {
            return None;
        }
        // Datasets are often sorted by class or repeat their classes in turn. Without a permutation, a shard could miss
        // some classes.
        let draw = || Permutation::draw(samples, &mut seed.stream(Domain::Membership, 0, samples.get()));
        let permutation = (shards > NonZeroU64::MIN).then(draw);
        Some(Self { seed, samples, shards, permutation })
    }

    /// Returns the number of samples of a shard: at least one, and at most one more than any other shard. Zero for a shard
    /// that does not exist.
    pub fn len(&self, shard: u64) -> u64 {
        if shard >= self.shards.get() {
            return 0;
        }
        (self.samples.get() - shard).div_ceil(self.shards.get())
    }

    /// Returns the sample of the stream in a slot of a shard; `None` if there is no such slot.
    pub fn sample(&self, shard: u64, slot: u64) -> Option<u64> {
        if slot >= self.len(shard) {
            return None;
        }
        let place = shard + self.shards.get() * slot;
        Some(self.permutation.as_ref().map_or(place, |permutation| permutation.at(place)))
    }

    /// Returns the order in which a shard visits its slots; `None` if there is no such shard.
    pub fn order(&self, shard: u64) -> Option<Order> {
        let len = NonZeroU64::new(self.len(shard))?;
        let seed = if self.shards == NonZeroU64::MIN { self.seed } else { self.seed.child(shard) };
        Some(Order { seed, domain: Domain::UnlabelledOrder, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_stream_does_not_overflow() {
        for shards in [1, 2, 3, 1 << 32, u64::MAX - 1, u64::MAX] {
            let shards = NonZeroU64::new(shards).unwrap();
            let membership = Membership::new(Seed(1), NonZeroU64::MAX, shards).unwrap();
            for shard in [0, shards.get() - 1] {
                let last = membership.len(shard) - 1;
                assert!(membership.sample(shard, last).is_some());
                assert_eq!(membership.sample(shard, last + 1), None);
            }
        }
    }

    #[test]
    fn shards_and_slots_that_do_not_exist_have_no_samples() {
        let count = |n| NonZeroU64::new(n).unwrap();
        let membership = Membership::new(Seed(1), count(10), count(4)).unwrap();
        assert_eq!([0, 1, 2, 3, 4, u64::MAX].map(|shard| membership.len(shard)), [3, 3, 2, 2, 0, 0]);
        assert_eq!((membership.sample(3, 2), membership.sample(4, 0)), (None, None));
        assert!(membership.order(3).is_some() && membership.order(4).is_none());
        assert!(Membership::new(Seed(1), count(4), count(4)).is_some());
        assert!(Membership::new(Seed(1), count(3), count(4)).is_none());
    }
}
