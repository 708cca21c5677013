//! The loader: the same bytes for any timing of the workers, and every failure ends with an error.

mod blocks;
mod corrupt;
mod end_to_end;
mod fixtures;
mod micro_batches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use calmix_core::micro_batching::MicroBatch;
use calmix_core::rng::Seed;
use calmix_data::augment::Augment;
use calmix_data::error::DataError;
use calmix_data::loader::{ImageViews, InMemory, Loader, SampleIds, SampleStream, TrainBatch, Training};

use fixtures::{Drawn, Fault, SIZE, Tinted, start, workers};

fn training(steps: std::ops::Range<u64>) -> Training {
    Training {
        labelled: SampleStream { ids: SampleIds::from([3, 30, 31, 77, 150, 151, 152].as_slice()), batch: 5 },
        unlabelled: SampleStream { ids: SampleIds::from(100..301), batch: 23 },
        ..Training::new(Seed(5), steps)
    }
}

fn load(source: Drawn, training: Training, threads: usize) -> Vec<TrainBatch> {
    let loader = start(source, training, workers(threads, 3)).unwrap();
    loader.map(|batch| batch.unwrap().into_inner()).collect()
}

#[test]
fn any_number_of_workers_makes_the_same_batches() {
    let one = load(Drawn::default(), training(0..40), 1);
    assert_eq!(one.len(), 40);
    for threads in [2, 4] {
        assert_eq!(load(Drawn::default(), training(0..40), threads), one);
    }
}

#[test]
fn any_order_of_completion_makes_the_same_batches() {
    let calm = load(Drawn::default(), training(0..12), 1);
    for sleep_seed in 0..4 {
        assert_eq!(load(Drawn { sleeps: Some(sleep_seed), ..Drawn::default() }, training(0..12), 4), calm);
    }
}

#[test]
fn a_restart_at_any_of_fifty_steps_continues_with_the_same_batches() {
    let whole = load(Drawn::default(), training(0..52), 2);
    for cut in 0..50 {
        for threads in [1, 2, 4] {
            let resumed = load(Drawn::default(), training(cut..cut + 2), threads);
            assert_eq!(resumed, whole[cut as usize..cut as usize + 2], "cut at {cut}, {threads} workers");
        }
    }
}

#[test]
fn every_sample_comes_exactly_once_an_epoch() {
    // 201 samples by 23 per step, 7 samples by 5 per step: epochs end inside of batches.
    let mut visits: [BTreeMap<(u64, u64), u32>; 2] = Default::default();
    for batch in load(Drawn::default(), training(0..201), 4) {
        let labelled = batch.labelled.epochs.iter().zip(&batch.labelled.ids);
        let unlabelled = batch.unlabelled.epochs.iter().zip(&batch.unlabelled.ids);
        labelled.for_each(|(&epoch, &id)| *visits[0].entry((epoch, id)).or_default() += 1);
        unlabelled.for_each(|(&epoch, &id)| *visits[1].entry((epoch, id)).or_default() += 1);
    }
    assert!(visits.iter().all(|seen| seen.values().all(|&count| count == 1)));
    // 201 steps of 23 rows are 23 epochs of 201; 1,005 labelled rows are 143 epochs of 7 and 4 rows.
    assert_eq!(visits[1].len(), 23 * 201);
    assert!((100..301).all(|id| (0..23).all(|epoch| visits[1].contains_key(&(epoch, id)))));
    assert_eq!(visits[0].len(), 1_005);
    assert!((0..143).all(|epoch| visits[0].contains_key(&(epoch, 31))));
}

#[test]
fn rows_match_their_ids_and_epochs() {
    for batch in load(Drawn::default(), training(0..9), 3) {
        let views = calmix_data::loader::labelled_view_seed(Seed(5));
        let labelled = &batch.labelled;
        for (row, pixels) in labelled.pixels.chunks(SIZE).enumerate() {
            assert_eq!(pixels, Tinted::expected(labelled.ids[row], views, labelled.epochs[row], 1));
            assert_eq!(u64::from(labelled.labels[row]), labelled.ids[row] % 10);
        }
        let unlabelled = &batch.unlabelled;
        for row in 0..23 {
            let (id, epoch, place) =
                (unlabelled.ids[row], unlabelled.epochs[row], row * SIZE..(row + 1) * SIZE);
            assert_eq!(unlabelled.weak[place.clone()], Tinted::expected(id, Seed(5), epoch, 1));
            assert_eq!(unlabelled.strong[place], Tinted::expected(id, Seed(5), epoch, 2));
        }
    }
}

#[test]
fn both_views_are_decoded_once() {
    let source = Arc::new(Drawn::default());
    let loader = start(Arc::clone(&source), training(0..10), workers(2, 2)).unwrap();
    assert_eq!(loader.map(Result::unwrap).count(), 10);
    assert_eq!(source.read.load(Ordering::Relaxed), 10 * (5 + 23));
}

#[test]
fn images_in_memory_are_the_same_images() {
    let direct = load(Drawn::default(), training(0..30), 2);
    // Room for about half of them.
    let memory = InMemory::new(Drawn::default(), 100 * (SIZE as u64 + 64));
    let loader = start(memory, training(0..30), workers(4, 2)).unwrap();
    assert_eq!(loader.map(|batch| batch.unwrap().into_inner()).collect::<Vec<_>>(), direct);
}

#[test]
fn a_slow_consumer_costs_no_memory() {
    let source = Arc::new(Drawn::default());
    let mut loader = start(Arc::clone(&source), training(0..1000), workers(4, 3)).unwrap();
    let rows = 5 + 23;
    for taken in 1..=5 {
        let batch = loader.next().unwrap().unwrap();
        // Without a time limit, workers make three batches ahead of the one taken, and no more.
        let ahead = (taken + 3) * rows;
        let deadline = Instant::now() + Duration::from_secs(30);
        while source.read.load(Ordering::Relaxed) < ahead && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(source.read.load(Ordering::Relaxed), ahead);
        drop(batch);
    }
}

#[test]
fn a_consumer_that_keeps_batches_never_blocks() {
    let loader = start(Drawn::default(), training(0..20), workers(2, 2)).unwrap();
    let held: Vec<_> = loader.map(Result::unwrap).collect();
    assert!(held.iter().zip(0..).all(|(batch, step)| batch.step == step));
}

#[test]
fn a_panic_becomes_an_error_that_names_the_sample() {
    let started = Instant::now();
    let healthy = load(Drawn::default(), training(0..30), 1);
    // The first step with sample 200, for any timing of the workers.
    let first = healthy.iter().position(|batch| batch.unlabelled.ids.contains(&200)).unwrap();
    for threads in [1, 4] {
        let source = Drawn { fault: Some((200, Fault::Panic)), ..Drawn::default() };
        let mut loader = start(source, training(0..30), workers(threads, 3)).unwrap();
        for batch in &healthy[..first] {
            assert_eq!(*loader.next().unwrap().unwrap(), *batch);
        }
        let error = loader.next().unwrap().unwrap_err();
        assert!(
            matches!(&error, DataError::Panicked { id: 200, message } if message == "struck by lightning")
        );
        assert!(error.to_string().contains("sample 200"));
        assert!(loader.next().is_none());
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_source_that_hangs_is_named_and_left_behind() {
    let started = Instant::now();
    let source = Drawn { fault: Some((200, Fault::Hang)), ..Drawn::default() };
    let workers = calmix_data::loader::Workers { patience: Duration::from_millis(1_500), ..workers(2, 2) };
    let mut loader = start(source, training(0..30), workers).unwrap();
    let error = loader.find_map(Result::err).unwrap();
    assert!(matches!(&error, DataError::Stalled { ids, .. } if ids == &[200]), "{error}");
    drop(loader);
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn dropping_midway_ends_the_workers_promptly() {
    for taken in [0, 1, 7] {
        let source = Arc::new(Drawn { sleeps: Some(1), ..Drawn::default() });
        let mut loader = start(Arc::clone(&source), training(0..1000), workers(8, 4)).unwrap();
        assert_eq!(loader.by_ref().take(taken).map(Result::unwrap).count(), taken);
        let started = Instant::now();
        drop(loader);
        // A worker finishes the sample it is working on, which takes 2 ms; all that was ordered would take a minute.
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        // The workers ended: no other reference to the source is left.
        assert_eq!(Arc::strong_count(&source), 1);
    }
}

#[test]
fn loader_settings_are_checked_before_the_first_step() {
    let started = |training| start(Drawn::default(), training, workers(1, 1));
    let empty = SampleStream { ids: SampleIds::default(), batch: 4 };
    let error = started(Training { labelled: empty, ..training(0..1) }).unwrap_err();
    assert_eq!(error.to_string(), "the labelled stream has no samples, but every step takes 4 rows from it");
    let micro_batches = vec![MicroBatch { group: 0, index: 1 }];
    assert!(matches!(
        started(Training { micro_batches, ..training(0..1) }).unwrap_err(),
        DataError::NoSuchMicroBatch(_)
    ));
    let vast = Arc::new(Augment::usb(1 << 20));
    let vast = Loader::new(ImageViews::new(Arc::new(Drawn::default()), vast), training(0..1), workers(1, 1));
    assert!(matches!(vast.unwrap_err(), DataError::TooLarge { .. }));
}

#[test]
fn a_labelled_sample_needs_a_label() {
    let source = Drawn { fault: Some((77, Fault::NoLabel)), ..Drawn::default() };
    let mut loader = start(source, training(0..30), workers(2, 2)).unwrap();
    assert!(matches!(loader.find_map(Result::err), Some(DataError::NoLabel { id: 77 })));
}

#[test]
fn loader_counters_match_delivered_batches() {
    let source = Drawn { sleeps: Some(1), ..Drawn::default() };
    let mut loader = start(source, training(0..8), workers(2, 2)).unwrap();
    assert_eq!(loader.by_ref().map(Result::unwrap).count(), 8);
    let counters = loader.counters();
    assert_eq!(counters.images, 8 * 28);
    assert!(counters.waited > Duration::ZERO && counters.waited <= counters.elapsed);
}

#[test]
fn plain_supervision_needs_no_unlabelled_stream() {
    let batches =
        load(Drawn::default(), Training { unlabelled: SampleStream::default(), ..training(0..5) }, 2);
    assert_eq!(batches.len(), 5);
    assert!(batches.iter().all(|batch| batch.unlabelled.ids.is_empty() && batch.labelled.ids.len() == 5));
}

#[test]
fn eight_workers_under_stress_make_the_same_batches() {
    let stress = || Training {
        labelled: SampleStream { ids: SampleIds::from(0..4_000), batch: 64 },
        unlabelled: SampleStream { ids: SampleIds::from(0..50_000), batch: 448 },
        ..Training::new(Seed(5), 0..6)
    };
    let expected: Vec<TrainBatch> = load(Drawn::default(), stress(), 1);
    for round in 0..4 {
        let source = Drawn { sleeps: (round % 2 == 0).then_some(round), ..Drawn::default() };
        let loader = start(source, stress(), workers(8, 3)).unwrap();
        for (batch, expected) in loader.zip(&expected) {
            assert_eq!(*batch.unwrap(), *expected);
        }
    }
}
