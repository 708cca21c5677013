//! The order of a stream: every sample once an epoch, all orders equally likely, the same after a restart.

mod blocks;
mod membership;

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use calmix_core::micro_batching::MicroBatching;
use calmix_core::order::{Feed, Order, Visit};
use calmix_core::rng::{Domain, Seed};

fn order(seed: u64, len: u64) -> Order {
    Order { seed: Seed(seed), domain: Domain::UnlabelledOrder, len: NonZeroU64::new(len).unwrap() }
}

fn epoch(order: Order, epoch: u64) -> Vec<u64> {
    let mut cursor = order.cursor();
    let len = order.len.get();
    (epoch * len..(epoch + 1) * len).map(|position| cursor.at(position).index).collect()
}

/// The value that a chi-square variable of `df` degrees of freedom exceeds with the probability that a normal
/// one exceeds `z` (Wilson and Hilferty, 1931; within a tenth of a per cent from 9 degrees on).
fn chi2_limit(df: f64, z: f64) -> f64 {
    let c = 2.0 / (9.0 * df);
    df * (1.0 - c + z * c.sqrt()).powi(3)
}

/// Neither too uneven nor too even: both tails at p = 0.001. The orders are fixed, so a test cannot flicker.
fn assert_chi2(what: &str, chi2: f64, df: f64) {
    let (low, high) = (chi2_limit(df, -3.0902), chi2_limit(df, 3.0902));
    assert!(low < chi2 && chi2 < high, "{what}: chi-square {chi2} on {df} degrees of freedom");
}

/// Chi-square of the table "which block of values stands in which block of places" over `epochs` epochs.
///
/// The margins of the table are fixed, and the places of an epoch are drawn without replacement: with b blocks
/// and n values, X²·(n − 1)/n has the mean (b − 1)², all its non-zero eigenvalues being equal by symmetry.
fn table_chi2(order: Order, blocks: u64, epochs: u64) -> (f64, f64) {
    let n = order.len.get();
    assert_eq!(n % blocks, 0);
    let mut counts = vec![0_u64; (blocks * blocks) as usize];
    for e in 0..epochs {
        for (place, value) in epoch(order, e).into_iter().enumerate() {
            counts[(place as u64 * blocks / n * blocks + value * blocks / n) as usize] += 1;
        }
    }
    let expected = (n * epochs) as f64 / (blocks * blocks) as f64;
    let chi2: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
    (chi2 * (n - 1) as f64 / n as f64, ((blocks - 1) * (blocks - 1)) as f64)
}

#[test]
fn every_sample_comes_exactly_once_an_epoch() {
    for len in [1, 2, 3, 10, 97, 1000, 4096, 4097, 9_999] {
        for e in [0, 1, 2, 1_000_000] {
            let mut indices = epoch(order(5, len), e);
            indices.sort_unstable();
            assert!(indices.into_iter().eq(0..len), "length {len}, epoch {e}");
        }
    }
}

#[test]
fn all_orders_of_four_are_equally_likely() {
    let mut counts = BTreeMap::new();
    for e in 0..24_000 {
        *counts.entry(epoch(order(1, 4), e)).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.len(), 24);
    let chi2 = counts.values().map(|&c| (f64::from(c) - 1e3).powi(2) / 1e3).sum();
    assert_chi2("orders of four", chi2, 23.0);
}

#[test]
fn every_place_holds_every_value_equally_often() {
    for (len, blocks, epochs) in [(10, 10, 20_000), (100, 100, 5_000), (4096, 64, 100), (6400, 64, 100)] {
        let (chi2, df) = table_chi2(order(2, len), blocks, epochs);
        assert_chi2(&format!("places and values of {len}"), chi2, df);
    }
}

#[test]
fn seeds_make_orders_as_independent_as_epochs() {
    let len = 5_000;
    // The same place under consecutive seeds, and in both streams.
    let mut counts = [0_u32; 50];
    for seed in 0..2_500 {
        for domain in [Domain::LabelledOrder, Domain::UnlabelledOrder] {
            counts[(Order { domain, ..order(seed, len) }.at(17).index / 100) as usize] += 1;
        }
    }
    let chi2 = counts.iter().map(|&c| (f64::from(c) - 100.0).powi(2) / 100.0).sum();
    assert_chi2("one place over seeds", chi2, 49.0);
}

#[test]
fn neighbours_are_not_near_each_other() {
    let len = 6_401;
    let mut counts = [0_u32; 64];
    for e in 0..50 {
        // The distance of neighbours is uniform over 1, …, 6400.
        for pair in epoch(order(3, len), e).windows(2) {
            counts[((pair[1] + len - pair[0]) % len - 1) as usize / 100] += 1;
        }
    }
    let expected = 50.0 * 6_400.0 / 64.0;
    let chi2 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
    assert_chi2("distances of neighbours", chi2, 63.0);
}

#[test]
fn fixed_points_are_as_rare_as_in_random_orders() {
    // Their number is Poisson(1) in the limit: the sum over 2,000 epochs is 2000 ± 4.5·√2000.
    let fixed =
        |e| epoch(order(4, 4_500), e).iter().zip(0..).filter(|&(&value, place)| value == place).count();
    let total: usize = (0..2_000).map(fixed).sum();
    assert!((1_800..2_200).contains(&total), "{total}");
}

#[test]
fn very_long_streams_need_no_memory() {
    for len in [1_000_000_000, 1 << 40] {
        let order = order(6, len);
        let mut indices: Vec<u64> =
            (0..10_000).map(|i| order.at(7 * len + i * (len / 10_000)).index).collect();
        indices.sort_unstable();
        indices.dedup();
        assert_eq!(indices.len(), 10_000);
        assert!(indices.iter().all(|&index| index < len));
        assert_eq!(order.at(8 * len - 1).epoch, 7);
        assert_eq!(order.at(8 * len).epoch, 8);
    }
}

/// A resumed run relies on these; tests/golden/order.py computes them from the description of the format.
#[test]
fn orders_are_a_stable_format() {
    let pinned = |len| (0..4).map(|i| order(9, len).at(3 * len + i).index).collect::<Vec<_>>();
    assert_eq!(pinned(10), [8, 6, 1, 7]);
    assert_eq!(pinned(50_000), [15_458, 9_564, 37_744, 21_673]);
    assert_eq!(pinned(1_000_000_000), [714_964_645, 405_141_720, 630_956_349, 14_047_040]);
}

/// The visits of rows of a step.
fn visits(feed: Feed, step: u64, rows: Range<u64>) -> impl Iterator<Item = Visit> {
    rows.map(move |row| feed.order.at(feed.position(step, row)))
}

#[test]
fn a_restart_at_any_step_continues_the_order() {
    let feed = Feed { order: order(7, 1_003), rows: 64 };
    let uninterrupted: Vec<Visit> = (0..50).flat_map(|step| visits(feed, step, 0..64)).collect();
    for cut in 0..50 {
        let resumed: Vec<Visit> = (cut..50).flat_map(|step| visits(feed, step, 0..64)).collect();
        assert_eq!(resumed, uninterrupted[cut as usize * 64..]);
    }
    assert!(uninterrupted.iter().zip(0..).all(|(visit, position)| visit.epoch == position / 1_003));
}

#[test]
fn batches_do_not_depend_on_who_runs_which_micro_batch() {
    let micro_batching =
        MicroBatching { groups: NonZeroU32::new(3).unwrap(), micro_batches: NonZeroU32::new(4).unwrap() };
    let feed = Feed { order: order(8, 5_003), rows: micro_batching.rows_per_step(28) };
    for step in 0..200 {
        let rows = micro_batching.all().map(|micro_batch| micro_batching.rows(28, micro_batch));
        let by_micro_batch: Vec<Visit> = rows.flat_map(|rows| visits(feed, step, rows)).collect();
        assert_eq!(by_micro_batch, visits(feed, step, 0..feed.rows).collect::<Vec<_>>());
    }
}
