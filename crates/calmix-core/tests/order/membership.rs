//! Which micro-batch a sample belongs to: one and only one, by chance and not by its place in the dataset; and the order of a
//! micro-batch.

use std::num::NonZeroU64;

use calmix_core::order::{Membership, Visit};
use calmix_core::rng::Seed;

use super::{assert_chi2, epoch, order, table_chi2};

fn membership(seed: u64, samples: u64, micro_batches: u64) -> Membership {
    let count = |n| NonZeroU64::new(n).unwrap();
    Membership::new(Seed(seed), count(samples), count(micro_batches)).unwrap()
}

/// The samples that a micro-batch draws in an epoch, in the order of its draws.
fn drawn(membership: &Membership, micro_batch: u64, e: u64) -> Vec<u64> {
    let slots = epoch(membership.order(micro_batch).unwrap(), e);
    slots.into_iter().map(|slot| membership.sample(micro_batch, slot).unwrap()).collect()
}

fn sorted(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values
}

#[test]
fn every_sample_comes_exactly_once_an_epoch_of_its_micro_batch() {
    let small = (1..=40).flat_map(|samples| (1..=samples).map(move |micro_batches| (samples, micro_batches)));
    let large = [(97, 8), (1_000, 7), (4_096, 8), (4_097, 16), (9_999, 12), (20_000, 3), (20_001, 3)];
    for (samples, micro_batches) in small.chain(large) {
        let membership = membership(5, samples, micro_batches);
        let mut owned = vec![0; samples as usize];
        for micro_batch in 0..micro_batches {
            let first = sorted(drawn(&membership, micro_batch, 0));
            assert_eq!(
                first.len() as u64,
                samples / micro_batches + u64::from(micro_batch < samples % micro_batches)
            );
            for &sample in &first {
                owned[sample as usize] += 1;
            }
            for e in [1, 1_000_000] {
                assert_eq!(
                    sorted(drawn(&membership, micro_batch, e)),
                    first,
                    "micro-batch {micro_batch} of {samples}/{micro_batches}"
                );
            }
        }
        assert!(
            owned.into_iter().all(|owners| owners == 1),
            "{samples} samples, {micro_batches} micro-batches"
        );
    }
}

#[test]
fn a_single_micro_batch_has_the_order_of_the_stream() {
    for samples in [1, 10, 4_097, 1_000_000_000] {
        let alone = membership(9, samples, 1);
        assert_eq!((alone.order(0), alone.len(0)), (Some(order(9, samples)), samples));
        assert!([0, samples / 2, samples - 1].iter().all(|&slot| alone.sample(0, slot) == Some(slot)));
    }
}

/// A resumed run relies on these; tests/golden/order.py computes them from the description of the format.
#[test]
fn memberships_are_a_stable_format() {
    let pinned = |samples, micro_batch| {
        let membership = membership(9, samples, 4);
        let order = membership.order(micro_batch).unwrap();
        [0, 1].map(|i| {
            let Visit { epoch, index } = order.at(3 * order.len.get() + i);
            assert_eq!(epoch, 3);
            (index, membership.sample(micro_batch, index).unwrap())
        })
    };
    assert_eq!(pinned(10, 0), [(1, 1), (0, 2)]);
    assert_eq!(pinned(10, 3), [(0, 6), (1, 5)]);
    assert_eq!(pinned(10_001, 0), [(1_127, 9_194), (1_746, 4_307)]);
    assert_eq!(pinned(10_001, 3), [(577, 5_914), (153, 6_611)]);
    assert_eq!(pinned(1_000_000_000, 0), [(165_008_807, 485_802_099), (113_713_871, 327_783_550)]);
    assert_eq!(pinned(1_000_000_000, 3), [(166_277_612, 980_420_973), (79_723_258, 307_667_948)]);
}

/// Chi-square of the table "how many samples of which class a micro-batch has", where the rows are micro-batches of the sizes
/// `sizes` and the columns are classes of the sizes `classes`, summed over `draws` independent memberships.
///
/// Both margins are fixed, and samples are drawn without replacement: X²·(n − 1)/n has the mean of its degrees of
/// freedom.
fn classes_chi2(counts: &[Vec<u64>], sizes: &[u64], classes: &[u64], draws: u64) -> f64 {
    let n = classes.iter().sum::<u64>() as f64;
    let mut chi2 = 0.0;
    for (row, &size) in counts.iter().zip(sizes) {
        for (&count, &class) in row.iter().zip(classes) {
            let expected = (draws * size * class) as f64 / n;
            chi2 += (count as f64 - expected).powi(2) / expected;
        }
    }
    chi2 * (n - 1.0) / n
}

#[test]
fn micro_batches_have_the_classes_of_the_dataset_however_it_is_sorted() {
    const DRAWS: u64 = 100;
    for (samples, micro_batches, classes) in [
        (4_000, 4, 10),
        (4_000, 8, 8),
        (4_001, 6, 9),
        (20_000, 4, 10),
        (20_000, 8, 8),
        (20_003, 8, 8),
        (50_000, 64, 10),
    ] {
        let by_block = move |sample: u64| sample * classes / samples;
        let in_turn = move |sample: u64| sample % classes;
        for (name, class) in [("sorted", &by_block as &dyn Fn(u64) -> u64), ("interleaved", &in_turn)] {
            let mut in_class = vec![0; classes as usize];
            for sample in 0..samples {
                in_class[class(sample) as usize] += 1;
            }
            let sizes: Vec<u64> = (0..micro_batches)
                .map(|micro_batch| membership(0, samples, micro_batches).len(micro_batch))
                .collect();
            let table = || vec![vec![0; classes as usize]; micro_batches as usize];
            let (mut pooled, mut sum) = (table(), 0.0);
            for seed in 0..DRAWS {
                let membership = membership(seed, samples, micro_batches);
                let mut counts = table();
                for (micro_batch, row) in (0..).zip(&mut counts) {
                    for slot in 0..membership.len(micro_batch) {
                        row[class(membership.sample(micro_batch, slot).unwrap()) as usize] += 1;
                    }
                }
                sum += classes_chi2(&counts, &sizes, &in_class, 1);
                for (all, one) in pooled.iter_mut().flatten().zip(counts.iter().flatten()) {
                    *all += one;
                }
            }
            let what =
                format!("{micro_batches} micro-batches of {samples} samples, {classes} classes {name}");
            let df = ((micro_batches - 1) * (classes - 1)) as f64;
            // Each membership alone, then what all of them have in common.
            assert_chi2(&what, sum, DRAWS as f64 * df);
            assert_chi2(&what, classes_chi2(&pooled, &sizes, &in_class, DRAWS), df);
        }
    }
}

#[test]
fn every_place_of_an_epoch_holds_every_slot_of_a_micro_batch_equally_often() {
    for (samples, micro_batches, blocks, epochs) in [(40, 4, 10, 5_000), (4 * 6_400, 4, 64, 40)] {
        let membership = membership(2, samples, micro_batches);
        for micro_batch in 0..micro_batches {
            let (chi2, df) = table_chi2(membership.order(micro_batch).unwrap(), blocks, epochs);
            assert_chi2(&format!("places and slots of micro-batch {micro_batch} of {samples}"), chi2, df);
        }
    }
}

#[test]
fn micro_batches_draw_independently_of_each_other() {
    // Which block of slots one micro-batch visits while another visits which of its blocks: places pair the slots of two
    // permutations at random, so the margins are fixed, as in `table_chi2`.
    const BLOCKS: u64 = 32;
    for per_batch in [1_600, 6_400] {
        let membership = membership(3, 4 * per_batch, 4);
        let mut counts = vec![0_u64; (BLOCKS * BLOCKS) as usize];
        for e in 0..20 {
            let [one, other] = [0, 3].map(|micro_batch| epoch(membership.order(micro_batch).unwrap(), e));
            for (a, b) in one.into_iter().zip(other) {
                counts[(a * BLOCKS / per_batch * BLOCKS + b * BLOCKS / per_batch) as usize] += 1;
            }
        }
        let expected = (20 * per_batch) as f64 / (BLOCKS * BLOCKS) as f64;
        let chi2: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
        let df = ((BLOCKS - 1) * (BLOCKS - 1)) as f64;
        assert_chi2("slots of two micro-batches", chi2 * (per_batch - 1) as f64 / per_batch as f64, df);
    }
}
