//! A step in several micro-batches: each draws from its own samples, on any process.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use calmix_core::micro_batching::{MicroBatch, MicroBatching};
use calmix_core::order::{Membership, Order};
use calmix_core::rng::{Domain, Seed};
use calmix_data::error::DataError;
use calmix_data::loader::{OnCorrupt, SampleIds, SampleStream, TrainBatch, Training};

use super::fixtures::{Drawn, SIZE, Tinted, start, workers};
use super::load;

const MICRO_BATCHES: usize = 6;
/// Labelled and unlabelled rows of a micro-batch.
const ROWS: (usize, usize) = (2, 8);
const SAMPLES: Range<u64> = 100..301;

fn micro_batching(groups: u32, micro_batches: u32) -> MicroBatching {
    MicroBatching {
        groups: NonZeroU32::new(groups).unwrap(),
        micro_batches: NonZeroU32::new(micro_batches).unwrap(),
    }
}

/// Two groups of three micro-batches: 201 samples for six.
fn training(steps: Range<u64>) -> Training {
    let micro_batching = micro_batching(2, 3);
    Training {
        micro_batching,
        micro_batches: micro_batching.all().collect(),
        labelled: SampleStream { ids: SampleIds::from([3, 30, 31, 77, 150, 151, 152].as_slice()), batch: 6 },
        unlabelled: SampleStream { ids: SampleIds::from(SAMPLES), batch: 24 },
        ..Training::new(Seed(5), steps)
    }
}

fn membership() -> Membership {
    let count = |n| NonZeroU64::new(n).unwrap();
    Membership::new(Seed(5), count(SAMPLES.end - SAMPLES.start), count(MICRO_BATCHES as u64)).unwrap()
}

/// What an unlabelled row is: sample, epoch, slot, and both views.
type Row = (u64, u64, u64, Vec<u8>, Vec<u8>);

fn unlabelled(batch: &TrainBatch) -> Vec<Row> {
    let rows = &batch.unlabelled;
    let views = rows.weak.chunks(SIZE).zip(rows.strong.chunks(SIZE));
    let all = rows.ids.iter().zip(&rows.epochs).zip(&rows.slots).zip(views);
    all.map(|(((&id, &epoch), &slot), (weak, strong))| (id, epoch, slot, weak.to_vec(), strong.to_vec()))
        .collect()
}

fn labelled(batch: &TrainBatch) -> Vec<(u64, u64, u32, Vec<u8>)> {
    let rows = &batch.labelled;
    let all = rows.ids.iter().zip(&rows.epochs).zip(&rows.labels).zip(rows.pixels.chunks(SIZE));
    all.map(|(((&id, &epoch), &label), pixels)| (id, epoch, label, pixels.to_vec())).collect()
}

#[test]
fn processes_that_run_micro_batches_make_the_rows_of_the_whole() {
    let micro_batches = training(0..0).micro_batches;
    let of = |micro_batches: &[MicroBatch]| {
        load(Drawn::default(), Training { micro_batches: micro_batches.to_vec(), ..training(4..9) }, 2)
    };
    let whole = of(&micro_batches);
    assert_eq!((whole[0].labelled.ids.len(), whole[0].unlabelled.ids.len()), (12, 48));
    for processes in [2, 3, MICRO_BATCHES] {
        let shares: Vec<Vec<TrainBatch>> = micro_batches.chunks(MICRO_BATCHES / processes).map(of).collect();
        for (step, batch) in whole.iter().enumerate() {
            let rows = || shares.iter().map(|share| &share[step]);
            assert_eq!(rows().flat_map(unlabelled).collect::<Vec<_>>(), unlabelled(batch));
            assert_eq!(rows().flat_map(labelled).collect::<Vec<_>>(), labelled(batch));
        }
    }
    // The rows of a process follow the order in which its micro-batches were named.
    let turned = of(&[micro_batches[4], micro_batches[1]]);
    for (batch, whole) in turned.iter().zip(&whole) {
        let whole = unlabelled(whole);
        assert_eq!(unlabelled(batch), [&whole[4 * 8..5 * 8], &whole[8..2 * 8]].concat());
    }
}

#[test]
fn a_micro_batch_draws_its_own_samples_each_once_an_epoch() {
    let membership = membership();
    let mut visits = BTreeMap::new();
    for batch in load(Drawn::default(), training(0..120), 4) {
        for (row, (id, epoch, slot, weak, strong)) in unlabelled(&batch).into_iter().enumerate() {
            let (micro_batch, row) = ((row / ROWS.1) as u64, (row % ROWS.1) as u64);
            let visit = membership.order(micro_batch).unwrap().at(batch.step * ROWS.1 as u64 + row);
            assert_eq!((epoch, slot), (visit.epoch, visit.index));
            assert_eq!(id, SAMPLES.start + membership.sample(micro_batch, slot).unwrap());
            assert_eq!(weak, Tinted::expected(id, Seed(5), epoch, 1));
            assert_eq!(strong, Tinted::expected(id, Seed(5), epoch, 2));
            *visits.entry((id, epoch)).or_insert(0) += 1;
        }
    }
    assert!(visits.values().all(|&count| count == 1));
    // 120 steps of 8 rows are 28 epochs of 34 samples, which three of the micro-batches have, and 29 of 33.
    assert!(SAMPLES.clone().all(|id| (0..28).all(|epoch| visits.contains_key(&(id, epoch)))));
}

#[test]
fn labelled_rows_are_cut_from_one_order() {
    let order = Order { seed: Seed(5), domain: Domain::LabelledOrder, len: NonZeroU64::new(7).unwrap() };
    let ids = [3, 30, 31, 77, 150, 151, 152];
    let batches = load(Drawn::default(), training(0..20), 2);
    let rows = batches.iter().flat_map(|batch| batch.labelled.ids.iter().zip(&batch.labelled.epochs));
    for ((&id, &epoch), position) in rows.zip(0..) {
        let visit = order.at(position);
        assert_eq!((id, epoch), (ids[visit.index as usize], visit.epoch));
    }
    assert_eq!(batches[19].labelled.ids.len(), MICRO_BATCHES * ROWS.0);
}

#[test]
fn a_single_micro_batch_draws_the_whole_stream_in_its_order() {
    let micro_batching = MicroBatching::default();
    let single =
        Training { micro_batching, micro_batches: micro_batching.all().collect(), ..training(0..30) };
    let len = NonZeroU64::new(SAMPLES.end - SAMPLES.start).unwrap();
    let order = Order { seed: Seed(5), domain: Domain::UnlabelledOrder, len };
    let mut position = 0;
    for batch in load(Drawn::default(), single, 2) {
        for (id, epoch, slot, ..) in unlabelled(&batch) {
            let visit = order.at(position);
            assert_eq!((id, epoch, slot), (SAMPLES.start + visit.index, visit.epoch, visit.index));
            position += 1;
        }
    }
    assert_eq!(position, 30 * 24);
}

#[test]
fn a_restart_at_any_step_continues_with_the_same_rows() {
    let whole = load(Drawn::default(), training(0..32), 2);
    for cut in 0..30 {
        for threads in [1, 4] {
            let resumed = load(Drawn::default(), training(cut..cut + 2), threads);
            assert_eq!(resumed, whole[cut as usize..cut as usize + 2], "cut at {cut}, {threads} workers");
        }
    }
}

#[test]
fn a_corrupt_sample_is_replaced_by_one_of_its_micro_batch() {
    let corrupt = || Drawn { corrupt_every: Some(20), sleeps: Some(3), ..Drawn::default() };
    let tolerant = |steps| Training { corrupt: OnCorrupt::Skip { share: 1.0 }, ..training(steps) };
    let membership = membership();
    let batches = load(corrupt(), tolerant(0..30), 4);
    let mut replaced = 0;
    for batch in &batches {
        for (row, (id, epoch, slot, ..)) in unlabelled(batch).into_iter().enumerate() {
            let (micro_batch, within) = ((row / ROWS.1) as u64, (row % ROWS.1) as u64);
            let order = membership.order(micro_batch).unwrap();
            let sample = |slot| SAMPLES.start + membership.sample(micro_batch, slot).unwrap();
            let mut position = batch.step * ROWS.1 as u64 + within;
            let mut skipped = Vec::new();
            while sample(order.at(position).index) % 20 == 0 {
                skipped.push(sample(order.at(position).index));
                position += order.len.get();
            }
            let visit = order.at(position);
            assert_eq!((id, epoch, slot), (sample(visit.index), visit.epoch, visit.index));
            let row = MICRO_BATCHES * ROWS.0 + row;
            let named = batch.skipped.iter().filter(|skipped| skipped.row == row);
            assert_eq!(named.map(|skipped| skipped.id).collect::<Vec<_>>(), skipped);
            replaced += skipped.len();
        }
    }
    // 30 steps of 48 rows out of 201 samples, of which 11 are corrupt: 79 are expected.
    assert!((60..100).contains(&replaced), "{replaced}");
    for cut in [1, 13, 29] {
        assert_eq!(load(corrupt(), tolerant(cut..30), 2), batches[cut as usize..]);
    }
}

fn refused(training: Training) -> String {
    start(Drawn::default(), training, workers(1, 1)).unwrap_err().to_string()
}

#[test]
fn batches_that_cannot_be_cut_equally_are_refused() {
    let stream = |batch| SampleStream { ids: SampleIds::from(SAMPLES), batch };
    assert_eq!(
        refused(Training { labelled: stream(5), ..training(0..1) }),
        "the labelled batch of 5 rows cannot be divided into 3 equal micro-batches; choose train.batch and train.ratio so that \
         train.micro_batches divides both batches"
    );
    let error = refused(Training { unlabelled: stream(23), ..training(0..1) });
    assert!(
        error.starts_with("the unlabelled batch of 23 rows cannot be divided into 3 equal micro-batches; "),
        "{error}"
    );
    // For any choice of micro-batches.
    let micro_batches = vec![MicroBatch { group: 1, index: 0 }];
    assert!(refused(Training { micro_batches, labelled: stream(5), ..training(0..1) }).contains("5 rows"));
}

#[test]
fn every_micro_batch_needs_a_sample() {
    let few = |n: u64| SampleStream { ids: SampleIds::from(0..n), batch: 24 };
    assert_eq!(load(Drawn::default(), Training { unlabelled: few(6), ..training(0..3) }, 2).len(), 3);
    let first = vec![MicroBatch { group: 0, index: 0 }];
    assert_eq!(
        refused(Training { unlabelled: few(5), micro_batches: first, ..training(0..1) }),
        "5 unlabelled samples are too few for 6 micro-batches, which need one each; choose smaller train.groups or \
         train.micro_batches"
    );
    let missing = vec![MicroBatch { group: 2, index: 0 }];
    let started = Training { micro_batches: missing, unlabelled: few(5), ..training(0..1) };
    let started = start(Drawn::default(), started, workers(1, 1));
    assert!(matches!(started.unwrap_err(), DataError::NoSuchMicroBatch(MicroBatch { group: 2, index: 0 })));
    // Where nothing is drawn, nothing is needed.
    let none = SampleStream { ids: SampleIds::from(0..5), batch: 0 };
    let batches = load(Drawn::default(), Training { unlabelled: none, ..training(0..3) }, 2);
    assert!(batches.iter().all(|batch| batch.unlabelled.ids.is_empty() && batch.labelled.ids.len() == 12));
}
