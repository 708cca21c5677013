//! Corrupt samples, and evaluation.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use calmix_core::rng::Seed;
use calmix_data::error::DataError;
use calmix_data::loader::{
    EvalBatch, EvalLoader, OnCorrupt, SampleIds, SampleStream, Tally, TrainBatch, Training,
};

use super::fixtures::{Drawn, Fault, SIZE, Tinted, drawn, start, workers};

fn training(steps: std::ops::Range<u64>) -> Training {
    Training {
        labelled: SampleStream { ids: SampleIds::from(0..50), batch: 4 },
        unlabelled: SampleStream { ids: SampleIds::from(0..500), batch: 28 },
        ..Training::new(Seed(5), steps)
    }
}

fn load(source: Drawn, training: Training, threads: usize) -> Vec<TrainBatch> {
    start(source, training, workers(threads, 3)).unwrap().map(|batch| batch.unwrap().into_inner()).collect()
}

/// One sample in a hundred is corrupt, and up to a tenth may be.
fn corrupt() -> Drawn {
    Drawn { corrupt_every: Some(100), sleeps: Some(3), ..Drawn::default() }
}

fn tolerant(steps: std::ops::Range<u64>) -> Training {
    Training { corrupt: OnCorrupt::Skip { share: 0.1 }, ..training(steps) }
}

#[test]
fn corrupt_samples_are_replaced_by_the_same_place_of_the_next_epoch() {
    let healthy = load(Drawn::default(), tolerant(0..80), 2);
    let skipping = load(corrupt(), tolerant(0..60), 2);
    let visits = |batches: &[TrainBatch]| -> Vec<(u64, u64)> {
        let unlabelled = batches.iter().map(|batch| &batch.unlabelled);
        unlabelled.flat_map(|rows| rows.ids.iter().copied().zip(rows.epochs.iter().copied())).collect()
    };
    let (healthy, skipped) = (visits(&healthy), visits(&skipping));
    let mut replaced = 0;
    for (position, &visit) in skipped.iter().enumerate() {
        let mut expected = position;
        while healthy[expected].0 % 100 == 0 {
            expected += 500;
        }
        replaced += usize::from(expected != position);
        assert_eq!(visit, healthy[expected], "position {position}");
    }
    // 60 steps of 28 rows: 3.36 epochs with five corrupt samples each.
    assert!((15..=20).contains(&replaced), "{replaced}");
    let named: Vec<_> = skipping.iter().flat_map(|batch| &batch.skipped).collect();
    assert!(named.iter().all(|skipped| skipped.id % 100 == 0 && skipped.problem.contains("not a JPEG")));
    let of_unlabelled = named.iter().filter(|skipped| skipped.row >= 4).count();
    assert_eq!(of_unlabelled, replaced);
}

#[test]
fn skipping_does_not_depend_on_workers_or_restarts() {
    let whole = load(corrupt(), tolerant(0..40), 1);
    for threads in [2, 4] {
        assert_eq!(load(corrupt(), tolerant(0..40), threads), whole);
    }
    for cut in (0..40).step_by(7) {
        assert_eq!(load(corrupt(), tolerant(cut..40), 4), whole[cut as usize..]);
    }
}

#[test]
fn too_many_corrupt_samples_end_a_run_at_the_same_step_resumed_or_not() {
    // One in a hundred, where one in a thousand is allowed: the eleventh ends the run.
    let run = |steps, tally, threads| {
        let mut loader =
            start(corrupt(), Training { tally, ..training(steps) }, workers(threads, 3)).unwrap();
        let mut delivered = Vec::new();
        loop {
            match loader.next().unwrap() {
                Ok(batch) => delivered.push((batch.step, loader.tally())),
                Err(error) => return (delivered, error),
            }
        }
    };
    let (whole, error) = run(0..1000, Tally::default(), 1);
    assert!(matches!(&error, DataError::TooManyCorrupt { skipped, .. } if *skipped >= 11), "{error}");
    assert!(error.to_string().contains("not a JPEG"), "{error}");
    let (last, _) = *whole.last().unwrap();
    for cut in [3, last / 2, last] {
        let (_, tally) = whole[cut as usize - 1];
        let (resumed, _) = run(cut..1000, tally, 4);
        assert_eq!(resumed, whole[cut as usize..]);
    }
}

#[test]
fn a_run_may_stop_at_the_first_corrupt_sample() {
    let mut loader =
        start(corrupt(), Training { corrupt: OnCorrupt::Stop, ..training(0..100) }, workers(4, 3)).unwrap();
    let error = loader.find_map(Result::err).unwrap();
    assert!(matches!(&error, DataError::Sample { id, .. } if id % 100 == 0));
    assert!(error.to_string().ends_with("train.bin: not a JPEG"), "{error}");
    assert!(loader.next().is_none());
}

#[test]
fn an_unreachable_file_is_never_skipped() {
    let source = Drawn { fault: Some((17, Fault::Unreachable)), ..Drawn::default() };
    let error = start(source, training(0..100), workers(4, 3)).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(&error, DataError::Sample { id: 17, .. }), "{error}");
}

/// A file that is another than when the dataset was prepared: no other sample takes its place, in training or evaluation.
#[test]
fn changed_data_is_never_replaced() {
    let source = || Drawn { fault: Some((117, Fault::Changed)), ..Drawn::default() };
    let error = start(source(), tolerant(0..100), workers(4, 3)).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(&error, DataError::Sample { id: 117, .. }), "{error}");
    assert!(error.to_string().contains("another checksum"), "{error}");
    let error = evaluate(source(), OnCorrupt::Skip { share: 1.0 }, 2).unwrap_err();
    assert!(matches!(&error, DataError::Sample { id: 117, .. }), "{error}");
}

/// A filer that is away for seconds: workers wait, people hear of it once, and the batches are the same.
#[cfg(unix)]
#[test]
fn temporary_outage_does_not_change_batches() {
    let whole = load(Drawn::default(), training(0..12), 2);
    // Two workers ask six times each: 0.1 to 3.2 s.
    let source = Drawn { fault: Some((100, Fault::Away(12))), ..Drawn::default() };
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&warnings);
    let warn = move |text: &str| sink.lock().unwrap().push(text.to_owned());
    let loader = start(source, training(0..12), workers(2, 3)).unwrap().warning(Arc::new(warn));
    let batches: Vec<TrainBatch> = loader.map(|batch| batch.unwrap().into_inner()).collect();
    assert_eq!(batches, whole);
    let warnings = warnings.lock().unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("train.bin") && warnings[0].contains("waiting for the storage"),
        "{warnings:?}"
    );
    assert!(warnings[1].contains("the storage is available again"), "{warnings:?}");
}

/// A request to stop is heard while workers wait for the storage, or hang in it.
#[cfg(unix)]
#[test]
fn waiting_for_storage_ends_with_a_request_to_stop() {
    for fault in [Fault::Gone, Fault::Hang] {
        let began = Instant::now();
        let mut loader =
            start(Drawn { fault: Some((3, fault)), ..Drawn::default() }, training(0..100), workers(2, 3))
                .unwrap();
        let mut stop = || began.elapsed() > Duration::from_millis(500);
        let error = loop {
            if let Err(error) = loader.next_unless(&mut stop).unwrap() {
                break error;
            }
        };
        assert!(matches!(error, DataError::Interrupted), "{fault:?}: {error}");
        assert!(loader.next().is_none());
        drop(loader);
        assert!(began.elapsed() < Duration::from_secs(5), "{fault:?}: after {:?}", began.elapsed());
    }
}

#[test]
fn a_stream_of_corrupt_samples_ends() {
    let source = Drawn { corrupt_every: Some(1), ..Drawn::default() };
    let error = start(source, training(0..100), workers(2, 3)).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(error, DataError::NoReplacement { .. }), "{error}");
}

fn evaluate(source: Drawn, corrupt: OnCorrupt, threads: usize) -> Result<Vec<EvalBatch>, DataError> {
    let stream = SampleStream { ids: SampleIds::from(20..165), batch: 32 };
    let evaluation = EvalLoader::new(Tinted::new(source), stream, corrupt, workers(threads, 2))?;
    evaluation.map(|batch| batch.map(calmix_data::loader::PooledBatch::into_inner)).collect()
}

#[test]
fn evaluation_goes_through_all_samples_in_order() {
    for threads in [1, 4] {
        let source = Drawn { sleeps: Some(9), ..Drawn::default() };
        let batches = evaluate(source, OnCorrupt::default(), threads).unwrap();
        assert_eq!(batches.iter().map(|batch| batch.ids.len()).collect::<Vec<_>>(), [32, 32, 32, 32, 17]);
        let mut ids = 20..165;
        for batch in &batches {
            for (row, &id) in batch.ids.iter().enumerate() {
                assert_eq!(Some(id), ids.next());
                assert_eq!(batch.labels[row], Some((id % 10) as u32));
                assert_eq!(batch.pixels[row * SIZE..(row + 1) * SIZE], drawn(id));
            }
        }
        assert!(ids.is_empty());
    }
}

#[test]
fn evaluation_leaves_out_corrupt_samples_or_stops() {
    let faulty = || Drawn { corrupt_every: Some(50), ..Drawn::default() };
    let batches = evaluate(faulty(), OnCorrupt::default(), 3).unwrap();
    let ids: Vec<u64> = batches.iter().flat_map(|batch| batch.ids.clone()).collect();
    assert!(ids.iter().copied().eq((20..165).filter(|id| id % 50 != 0)));
    let pixels: Vec<u8> = batches.iter().flat_map(|batch| batch.pixels.clone()).collect();
    assert_eq!(pixels, ids.iter().flat_map(|&id| drawn(id)).collect::<Vec<_>>());
    let skipped: Vec<u64> =
        batches.iter().flat_map(|batch| &batch.skipped).map(|skipped| skipped.id).collect();
    assert_eq!(skipped, [50, 100, 150]);
    assert!(matches!(evaluate(faulty(), OnCorrupt::Stop, 3), Err(DataError::Sample { id: 50, .. })));
    // Without samples there are no batches.
    let none = SampleStream { ids: SampleIds::default(), batch: 8 };
    let corrupt = OnCorrupt::default();
    let empty = EvalLoader::new(Tinted::new(faulty()), none, corrupt, workers(2, 2)).unwrap();
    assert_eq!(empty.count(), 0);
}
