//! The order by block: every sample once per epoch, each file in one block, files and samples by chance, and nothing depends
//! on who asks.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use calmix_core::order::{BlockMembership, Visit};
use calmix_core::rng::Seed;
use proptest::collection::vec;
use proptest::prelude::*;

use super::assert_chi2;

fn membership(seed: u64, lengths: &[u64], micro_batches: u64, block: u64) -> BlockMembership {
    let count = |n| NonZeroU64::new(n).unwrap();
    BlockMembership::new(Seed(seed), lengths, count(micro_batches), count(block)).unwrap()
}

/// The samples that a micro-batch draws in an epoch, in the order of its draws.
fn drawn(membership: &BlockMembership, micro_batch: u64, epoch: u64) -> Vec<u64> {
    let order = membership.order(micro_batch).unwrap();
    let mut cursor = order.cursor();
    let positions = epoch * order.len.get()..(epoch + 1) * order.len.get();
    let visit = |position| {
        let Visit { epoch: found, index } = cursor.at(position);
        assert_eq!(found, epoch);
        membership.sample(micro_batch, index).unwrap()
    };
    positions.map(visit).collect()
}

/// The file of a sample.
fn file_of(lengths: &[u64], sample: u64) -> usize {
    let mut end = 0;
    lengths
        .iter()
        .position(|length| {
            end += length;
            sample < end
        })
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_sample_comes_once_per_epoch(
        lengths in vec(0_u64..60, 1..40),
        micro_batches in 1_u64..9,
        block in 1_u64..12,
        seed in any::<u64>(),
    ) {
        let samples: u64 = lengths.iter().sum();
        prop_assume!(samples >= micro_batches);
        let membership = membership(seed, &lengths, micro_batches, block);
        let mut owned = vec![0; samples as usize];
        for micro_batch in 0..micro_batches {
            let mut first = drawn(&membership, micro_batch, 0);
            prop_assert_eq!(first.len() as u64, samples / micro_batches + u64::from(micro_batch < samples % micro_batches));
            prop_assert_eq!(first.len() as u64, membership.len(micro_batch));
            for &sample in &first {
                owned[sample as usize] += 1;
            }
            first.sort_unstable();
            for epoch in [1, 1_000_000] {
                let mut later = drawn(&membership, micro_batch, epoch);
                later.sort_unstable();
                prop_assert_eq!(&later, &first);
            }
        }
        prop_assert!(owned.into_iter().all(|owners| owners == 1));
    }

    /// What a cache relies on: a file of a micro-batch is needed in one block of an epoch, and no block needs more than `block`.
    #[test]
    fn each_file_is_in_one_block_of_an_epoch(
        lengths in vec(1_u64..60, 1..40),
        micro_batches in 1_u64..5,
        block in 1_u64..8,
        epoch in 0_u64..1_000,
    ) {
        let samples: u64 = lengths.iter().sum();
        prop_assume!(samples >= micro_batches);
        let membership = membership(3, &lengths, micro_batches, block);
        let mut needed = 0;
        for micro_batch in 0..micro_batches {
            let order = membership.order(micro_batch).unwrap();
            let mut cursor = order.cursor();
            let mut position = epoch * order.len.get();
            while position < (epoch + 1) * order.len.get() {
                let found = cursor.block(position);
                prop_assert_eq!(found.positions.start, position);
                let files_at = |slots: Vec<u64>| -> BTreeSet<usize> {
                    let sample = |slot| membership.sample(micro_batch, slot).unwrap();
                    slots.into_iter().map(|slot| file_of(&lengths, sample(slot))).collect()
                };
                let announced = files_at(found.first_slots.clone());
                let visited = files_at(found.positions.clone().map(|at| cursor.at(at).index).collect());
                prop_assert!(announced.len() as u64 <= block);
                prop_assert_eq!(&announced, &visited);
                prop_assert_eq!(found.first_slots.len(), announced.len());
                needed += announced.len();
                prop_assert_eq!(cursor.block(found.positions.end - 1), found.clone());
                position = found.positions.end;
            }
            prop_assert_eq!(position, (epoch + 1) * order.len.get());
        }
        // Each file once, and one more for each cut between two micro-batches.
        prop_assert!((needed as u64) < lengths.len() as u64 + micro_batches);
    }

    #[test]
    fn cursor_and_single_calls_agree(lengths in vec(1_u64..40, 1..20), positions in vec(0_u64..5_000, 1..20)) {
        prop_assume!(lengths.iter().sum::<u64>() >= 3);
        let order = membership(8, &lengths, 3, 4).order(1).unwrap();
        let mut cursor = order.cursor();
        for position in positions {
            prop_assert_eq!(cursor.at(position), order.at(position));
        }
    }
}

#[test]
fn files_meet_every_block_equally_often() {
    const FILES: u64 = 24;
    const EPOCHS: u64 = 4_000;
    let order = membership(5, &[3; FILES as usize], 1, 4).order(0).unwrap();
    let mut cursor = order.cursor();
    let mut counts = [[0_u32; 6]; FILES as usize];
    for epoch in 0..EPOCHS {
        for place in 0..order.len.get() {
            let Visit { index, .. } = cursor.at(epoch * order.len.get() + place);
            counts[(index / 3) as usize][(place / 12) as usize] += 1;
        }
    }
    // A file has all its three samples in one block.
    let expected = EPOCHS as f64 / 6.0;
    let cell = |&count: &u32| (f64::from(count) / 3.0 - expected).powi(2) / expected;
    let chi2: f64 = counts.iter().flatten().map(cell).sum();
    // Margins are fixed and draws are without replacement, as in `table_chi2`.
    assert_chi2("files and blocks", chi2 * 23.0 / 24.0, 23.0 * 5.0);
}

#[test]
fn samples_of_a_block_meet_every_place_equally_often() {
    const EPOCHS: u64 = 3_000;
    let order = membership(6, &[10; 4], 1, 4).order(0).unwrap();
    let mut cursor = order.cursor();
    let mut counts = [[0_u32; 40]; 40];
    for epoch in 0..EPOCHS {
        for place in 0..40 {
            counts[cursor.at(epoch * 40 + place).index as usize][place as usize] += 1;
        }
    }
    let expected = EPOCHS as f64 / 40.0;
    let chi2: f64 =
        counts.iter().flatten().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    assert_chi2("samples and places", chi2 * 39.0 / 40.0, 39.0 * 39.0);
}

#[test]
fn files_meet_every_micro_batch_equally_often() {
    const SEEDS: u64 = 3_000;
    let mut counts = [[0_u32; 4]; 12];
    for seed in 0..SEEDS {
        let membership = membership(seed, &[5; 12], 4, 2);
        for (micro_batch, slot) in (0..4).flat_map(|micro_batch| [0, 5, 10].map(|slot| (micro_batch, slot))) {
            counts[(membership.sample(micro_batch, slot).unwrap() / 5) as usize][micro_batch as usize] += 1;
        }
    }
    let expected = SEEDS as f64 / 4.0;
    let chi2: f64 =
        counts.iter().flatten().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    assert_chi2("files and micro-batches", chi2 * 11.0 / 12.0, 11.0 * 3.0);
}

#[test]
fn large_streams_do_not_overflow() {
    let lengths = [u64::MAX / 4; 4];
    for micro_batches in [1, 3, 1 << 32, u64::MAX / 2] {
        let membership = membership(1, &lengths, micro_batches, 2);
        for micro_batch in [0, micro_batches - 1] {
            let last = membership.len(micro_batch) - 1;
            assert!(
                membership.sample(micro_batch, last).is_some()
                    && membership.sample(micro_batch, last + 1).is_none()
            );
            let order = membership.order(micro_batch).unwrap();
            assert!(order.at(order.len.get() - 1).index < order.len.get());
        }
    }
    let count = |n| NonZeroU64::new(n).unwrap();
    assert!(BlockMembership::new(Seed(1), &[u64::MAX, 1], count(1), count(1)).is_none());
    assert!(BlockMembership::new(Seed(1), &[0, 2, 0], count(3), count(1)).is_none());
    assert!(BlockMembership::new(Seed(1), &[], count(1), count(1)).is_none());
}

/// A resumed run relies on these; tests/golden/order.py computes them from the description of the format.
#[test]
fn block_orders_are_a_stable_format() {
    let lengths: Vec<u64> = (0..20).map(|file| 3_000 + 17 * file).collect();
    let pinned = |micro_batches, micro_batch| {
        let membership = membership(9, &lengths, micro_batches, 3);
        let order = membership.order(micro_batch).unwrap();
        [0, 1, 999]
            .map(|at| membership.sample(micro_batch, order.at(2 * order.len.get() + at).index).unwrap())
    };
    assert_eq!(pinned(1, 0), PINNED[0]);
    assert_eq!(pinned(4, 0), PINNED[1]);
    assert_eq!(pinned(4, 3), PINNED[2]);
}

const PINNED: [[u64; 3]; 3] = [[27_330, 26_153, 26_903], [21_157, 5_638, 5_212], [40_063, 37_809, 61_729]];
