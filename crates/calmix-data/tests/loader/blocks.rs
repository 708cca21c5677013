//! The order by block, in batches: each sample once per epoch, the same rows on any number of processes and after any restart.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use calmix_core::micro_batching::{MicroBatch, MicroBatching};
use calmix_core::rng::Seed;
use calmix_data::loader::{FileBlocks, SampleIds, SampleStream, TrainBatch, Training};

use super::fixtures::Drawn;
use super::load;

const SAMPLES: Range<u64> = 100..301;
/// 201 samples in files of 7 to 28.
const FILES: [u64; 13] = [20, 7, 28, 9, 15, 15, 20, 11, 13, 18, 12, 8, 25];

fn training(steps: Range<u64>) -> Training {
    let micro_batching =
        MicroBatching { groups: NonZeroU32::new(2).unwrap(), micro_batches: NonZeroU32::new(3).unwrap() };
    Training {
        micro_batching,
        micro_batches: micro_batching.all().collect(),
        labelled: SampleStream { ids: SampleIds::from([3, 30, 31].as_slice()), batch: 6 },
        unlabelled: SampleStream { ids: SampleIds::from(SAMPLES), batch: 24 },
        blocks: Some(FileBlocks { lengths: FILES.into(), files: NonZeroU64::new(2).unwrap() }),
        ..Training::new(Seed(5), steps)
    }
}

fn rows(batch: &TrainBatch) -> Vec<(u64, u64, u64)> {
    let rows = &batch.unlabelled;
    rows.ids
        .iter()
        .zip(&rows.epochs)
        .zip(&rows.slots)
        .map(|((&id, &epoch), &slot)| (id, epoch, slot))
        .collect()
}

#[test]
fn blocks_visit_each_sample_once_per_epoch() {
    assert_eq!(FILES.iter().sum::<u64>(), SAMPLES.end - SAMPLES.start);
    let mut visits = BTreeMap::new();
    let mut micro_batches_of = BTreeMap::new();
    for batch in load(Drawn::default(), training(0..120), 4) {
        for (row, (id, epoch, slot)) in rows(&batch).into_iter().enumerate() {
            *visits.entry((id, epoch)).or_insert(0) += 1;
            micro_batches_of.entry(id).or_insert_with(BTreeSet::new).insert((row / 8, slot));
        }
    }
    assert!(visits.values().all(|&count| count == 1));
    // A sample stays in its slot of its micro-batch, where its state is.
    assert!(micro_batches_of.values().all(|places| places.len() == 1));
    assert!(SAMPLES.clone().all(|id| (0..28).all(|epoch| visits.contains_key(&(id, epoch)))));
}

#[test]
fn blocks_are_the_same_on_any_number_of_processes() {
    let micro_batches = training(0..0).micro_batches;
    let of = |micro_batches: &[MicroBatch]| {
        load(Drawn::default(), Training { micro_batches: micro_batches.to_vec(), ..training(4..9) }, 2)
    };
    let whole = of(&micro_batches);
    for processes in [2, 3, 6] {
        let shares: Vec<Vec<TrainBatch>> = micro_batches.chunks(6 / processes).map(of).collect();
        for (step, batch) in whole.iter().enumerate() {
            let of_all: Vec<_> = shares.iter().flat_map(|share| rows(&share[step])).collect();
            assert_eq!(of_all, rows(batch));
        }
    }
}

#[test]
fn blocks_continue_after_a_restart_at_any_step() {
    let whole = load(Drawn::default(), training(0..32), 2);
    for cut in 0..30 {
        let resumed = load(Drawn::default(), training(cut..cut + 2), 3);
        assert_eq!(resumed, whole[cut as usize..cut as usize + 2], "cut at {cut}");
    }
}
