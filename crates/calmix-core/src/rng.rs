//! Randomness without state: one counter-based generator, keyed.
//!
//! A [`Stream`] is a pure function of `(seed, domain, time, sample)`: the draws of a sample never depend on
//! other threads, the number of workers, or where a run was resumed.
//!
//! ```
//! use calmix_core::rng::{Domain, Seed};
//!
//! let step = 1_000;
//! let mut stream = Seed(7).stream(Domain::Partner, step, 42);
//! let again = Seed(7).stream(Domain::Partner, step, 42).next_u64();
//! assert_eq!(stream.next_u64(), again);
//! ```
//!
//! # Format
//!
//! The streams are a stable format: checkpoints and published splits rely on them, and tests pin them.
//!
//! 1. `(k₀, k₁, _, _) = Philox4x32-10(counter = (time, domain), key = seed)` derives the key of one domain at
//!    one time;
//! 2. block `b` of a sample is `Philox4x32-10(counter = (b, sample), key = (k₀, k₁))`, read word by word.
//!
//! All 64-bit numbers are split low word first; the domain fills the third word of the first counter. The
//! block number has 32 bits; the word above it counts the occurrences of one sample at one time
//! ([`Stream::occurrence`]).

mod draw;

use serde::{Deserialize, Serialize};

/// The seed of a run: with it, everything random in the run is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// The purpose of random numbers. Two domains never share a draw.
///
/// The numbers are part of the stream format: add new ones, never renumber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum Domain {
    /// The choice of labels when a dataset is split.
    Split = 1,
    /// The order of the labelled stream.
    LabelledOrder = 2,
    /// The order of the unlabelled stream.
    UnlabelledOrder = 3,
    /// Weak augmentation.
    Weak = 4,
    /// Strong augmentation.
    Strong = 5,
    /// Initial weights.
    Init = 6,
    /// The mixup coefficient λ.
    Lambda = 7,
    /// The choice among the k least similar candidates for a mixture.
    Partner = 8,
    /// Bootstrap resampling.
    Bootstrap = 9,
    /// Randomised prediction sets.
    Conformal = 10,
    /// Folds of cross-validation and cross-fitting.
    Fold = 11,
    /// Seeds derived from a seed.
    Child = 12,
    /// The assignment of unlabelled samples to micro-batches.
    Membership = 13,
    /// The choice of the rows of a group that are mixed, if not all are.
    Anchor = 14,
    /// The choice of the cached view of a sample, with a frozen backbone.
    FeatureView = 15,
    /// The choice of the unlabelled samples that are trained on, if not all are.
    UnlabelledCount = 16,
    /// The synthetic inputs beside an exported model.
    Example = 17,
    /// The order of files, and of samples in a block of files.
    Block = 18,
    /// The choice of the sample that represents its group.
    Group = 19,
    /// The first centres of clusters.
    Cluster = 20,
    /// The order in which the samples of a pool are labelled.
    PoolOrder = 21,
    /// The choice of the unlabelled samples that new samples are compared with.
    Reference = 22,
    /// The order of the rows of a batch that is monitored, and the ranks of equal scores.
    Monitor = 23,
    /// The order in which the rows of a certificate are audited.
    AuditOrder = 24,
    /// The samples that a head on neighbours compares vectors with.
    Landmark = 25,
}

impl Seed {
    /// Derives the `n`-th seed from this one, for a group or micro-batch of a step, or a kind of pair, that draws
    /// independently.
    #[must_use]
    pub fn child(self, n: u64) -> Self {
        Self(self.stream(Domain::Child, 0, n).next_u64())
    }

    /// Returns the stream of one sample in one domain at one time (a step, an epoch, or zero if time does not apply).
    pub fn stream(self, domain: Domain, time: u64, sample: u64) -> Stream {
        let [t0, t1] = words(time);
        let [k0, k1, _, _] = philox4x32_10([t0, t1, domain as u32, 0], words(self.0));
        Stream { key: [k0, k1], sample, occurrence: 0, block: 0, buffer: [0; 4], used: 4 }
    }
}

/// A stream of random numbers that belongs to one `(seed, domain, time, sample)`.
#[derive(Debug, Clone)]
pub struct Stream {
    key: [u32; 2],
    sample: u64,
    occurrence: u32,
    block: u32,
    buffer: [u32; 4],
    used: usize,
}

impl Stream {
    /// Returns the stream of the `n`-th occurrence of the same sample at the same time, from its beginning.
    ///
    /// A small labelled set repeats samples inside one batch; each occurrence draws its own partner.
    #[must_use]
    pub fn occurrence(self, n: u32) -> Self {
        Self { occurrence: n, block: 0, used: 4, ..self }
    }

    /// Returns the next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            let [s0, s1] = words(self.sample);
            self.buffer = philox4x32_10([self.block, self.occurrence, s0, s1], self.key);
            self.block = self.block.wrapping_add(1);
            self.used = 0;
        }
        let word = self.buffer[self.used];
        self.used += 1;
        word
    }

    /// Returns the next 64 random bits, low word first.
    pub fn next_u64(&mut self) -> u64 {
        let low = u64::from(self.next_u32());
        low | u64::from(self.next_u32()) << 32
    }
}

/// Returns for each id the number of its earlier occurrences in the list, the argument of [`Stream::occurrence`].
pub fn occurrences(ids: impl IntoIterator<Item = u64>) -> Vec<u32> {
    let mut counts = std::collections::BTreeMap::new();
    let mut count = |id| {
        let next = counts.entry(id).or_insert(0);
        *next += 1;
        *next - 1
    };
    ids.into_iter().map(&mut count).collect()
}

fn words(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011) is a bijection of the
// counter for each key, so distinct counters give independent draws. No crate is used: it is twenty lines with published test
// vectors, and checkpoints depend on its exact bits.
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: u32 = 10;

fn philox4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let left = u64::from(MULTIPLIERS[0]) * u64::from(counter[0]);
        let right = u64::from(MULTIPLIERS[1]) * u64::from(counter[2]);
        counter = [
            (right >> 32) as u32 ^ counter[1] ^ key[0],
            right as u32,
            (left >> 32) as u32 ^ counter[3] ^ key[1],
            left as u32,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_a_stable_format() {
        let mut stream = Seed(0x0123_4567_89ab_cdef).stream(Domain::Partner, 1 << 40, 77);
        let words: Vec<u32> = (0..6).map(|_| stream.next_u32()).collect();
        assert_eq!(words, PINNED);
        let mut third = stream.occurrence(2);
        assert_eq!(third.next_u32(), PINNED_THIRD_OCCURRENCE);
    }

    // Computed independently by tests/golden/philox.py from the format in the module's documentation.
    const PINNED: [u32; 6] = [0x8453_d59f, 0xeade_10cd, 0x89b0_1a1a, 0x77dc_514f, 0x0e86_0e5b, 0x452b_0477];
    const PINNED_THIRD_OCCURRENCE: u32 = 0xb556_8ea3;

    #[test]
    fn occurrences_count_from_zero() {
        assert_eq!(occurrences([5, 5, 9, 5]), [0, 1, 0, 2]);
    }

    #[test]
    fn every_part_of_the_key_matters() {
        let first =
            |seed, domain, time, sample, n| Seed(seed).stream(domain, time, sample).occurrence(n).next_u64();
        let base = first(1, Domain::Weak, 2, 3, 0);
        assert_ne!(Seed(1).child(0), Seed(1).child(1));
        assert_ne!(Seed(1).child(0), Seed(1));
        for other in [
            first(2, Domain::Weak, 2, 3, 0),
            first(1 << 32 | 1, Domain::Weak, 2, 3, 0),
            first(1, Domain::Strong, 2, 3, 0),
            first(1, Domain::Weak, 3, 3, 0),
            first(1, Domain::Weak, 1 << 32 | 2, 3, 0),
            first(1, Domain::Weak, 2, 4, 0),
            first(1, Domain::Weak, 2, 1 << 32 | 3, 0),
            first(1, Domain::Weak, 2, 3, 1),
        ] {
            assert_ne!(base, other);
        }
    }

    /// The known-answer vectors that Random123 publishes for philox4x32-10 (`kat_vectors`).
    #[test]
    fn known_answers_of_random123() {
        let ones = u32::MAX;
        let cases = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([ones; 4], [ones; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox4x32_10(counter, key), expected);
        }
    }
}
