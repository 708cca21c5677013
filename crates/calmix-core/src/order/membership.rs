//! Which micro-batch an unlabelled sample belongs to, and the order in which a micro-batch draws its samples.
//!
//! A sample belongs to the same micro-batch for the whole run. Only the process that runs the micro-batch reads its samples,
//! whatever the number of processes, and it can keep their state in an array by slot.
//!
//! # Format
//!
//! A resumed run relies on it, and a test pins it.
//!
//! - Micro-batch s of S has the samples P(s), P(s + S), P(s + 2S), … of the stream, in its slots 0, 1, 2, …. P is a
//!   permutation of the N samples of the stream, drawn from `seed.stream(Domain::Membership, 0, N)`; for a single
//!   micro-batch it is the identity. It does not depend on S.
//! - Micro-batch s visits its slots in the [`Order`] of the seed `seed.child(s)`; a single micro-batch, in that of the seed
//!   itself.

use std::num::NonZeroU64;

use crate::rng::{Domain, Seed};

use super::Order;
use super::permutation::Permutation;

/// The assignment of the samples of the unlabelled stream to micro-batches.
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
    micro_batches: NonZeroU64,
    /// `None` for a single micro-batch.
    permutation: Option<Permutation>,
}

impl Membership {
    /// Assigns the samples of a stream to the micro-batches of a step; `None` if there are fewer samples than micro-batches.
    pub fn new(seed: Seed, samples: NonZeroU64, micro_batches: NonZeroU64) -> Option<Self> {
        if samples < micro_batches {
            return None;
        }
        // Datasets are often sorted by class or repeat their classes in turn. Without a permutation, a micro-batch could miss
        // some classes.
        let draw = || Permutation::draw(samples, &mut seed.stream(Domain::Membership, 0, samples.get()));
        let permutation = (micro_batches > NonZeroU64::MIN).then(draw);
        Some(Self { seed, samples, micro_batches, permutation })
    }

    /// Returns the number of samples of a micro-batch: at least one, and at most one more than any other micro-batch. Zero for
    /// a micro-batch that does not exist.
    pub fn len(&self, micro_batch: u64) -> u64 {
        if micro_batch >= self.micro_batches.get() {
            return 0;
        }
        (self.samples.get() - micro_batch).div_ceil(self.micro_batches.get())
    }

    /// Returns the sample of the stream in a slot of a micro-batch; `None` if there is no such slot.
    pub fn sample(&self, micro_batch: u64, slot: u64) -> Option<u64> {
        if slot >= self.len(micro_batch) {
            return None;
        }
        let place = micro_batch + self.micro_batches.get() * slot;
        Some(self.permutation.as_ref().map_or(place, |permutation| permutation.at(place)))
    }

    /// Returns the order in which a micro-batch visits its slots; `None` if there is no such micro-batch.
    pub fn order(&self, micro_batch: u64) -> Option<Order> {
        let len = NonZeroU64::new(self.len(micro_batch))?;
        let seed =
            if self.micro_batches == NonZeroU64::MIN { self.seed } else { self.seed.child(micro_batch) };
        Some(Order { seed, domain: Domain::UnlabelledOrder, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_stream_does_not_overflow() {
        for micro_batches in [1, 2, 3, 1 << 32, u64::MAX - 1, u64::MAX] {
            let micro_batches = NonZeroU64::new(micro_batches).unwrap();
            let membership = Membership::new(Seed(1), NonZeroU64::MAX, micro_batches).unwrap();
            for micro_batch in [0, micro_batches.get() - 1] {
                let last = membership.len(micro_batch) - 1;
                assert!(membership.sample(micro_batch, last).is_some());
                assert_eq!(membership.sample(micro_batch, last + 1), None);
            }
        }
    }

    #[test]
    fn micro_batches_and_slots_that_do_not_exist_have_no_samples() {
        let count = |n| NonZeroU64::new(n).unwrap();
        let membership = Membership::new(Seed(1), count(10), count(4)).unwrap();
        assert_eq!(
            [0, 1, 2, 3, 4, u64::MAX].map(|micro_batch| membership.len(micro_batch)),
            [3, 3, 2, 2, 0, 0]
        );
        assert_eq!((membership.sample(3, 2), membership.sample(4, 0)), (None, None));
        assert!(membership.order(3).is_some() && membership.order(4).is_none());
        assert!(Membership::new(Seed(1), count(4), count(4)).is_some());
        assert!(Membership::new(Seed(1), count(3), count(4)).is_none());
    }
}
