//! Numbers that are none, files that cannot be read, disks that are full.

use std::fs;
use std::sync::atomic::AtomicBool;

use calmix_engine::error::EngineError;
use calmix_train::events::Event;
use calmix_train::inspect;
use calmix_train::trainer::{TrainError, Trainer};

use crate::made::{Bench, checkpoint, differing, resume};

/// A learning rate that no network survives.
const RUIN: [&str; 2] = ["optimiser.lr=1e30", "train.steps=30"];

#[test]
fn a_loss_that_is_not_finite_stops_the_run_before_it_is_kept() {
    let bench = Bench::new();
    let settings = [&RUIN[..], &["checkpoint.every=1"]].concat();
    let folder = bench.folder("run");
    let stop = AtomicBool::new(false);
    let error = Trainer::new(&stop).start(bench.recipe(&settings), &folder).unwrap_err();
    assert!(matches!(error, TrainError::Engine(EngineError::NotFinite { .. } | EngineError::Plan(_))), "{error}");
    let told = inspect::events(&folder).unwrap().iter().filter(|event| matches!(event, Event::Step(_))).count() as u64;
    assert_eq!(inspect::inspect(&folder).unwrap().step, Some(told), "the last good step is kept, and no other");
    // Again, the same.
    assert_eq!(resume(&folder).unwrap_err().to_string(), error.to_string());
}

#[test]
fn steps_that_are_not_finite_may_be_skipped_and_are_counted() {
    let bench = Bench::new();
    let settings =
        [&RUIN[..], &["train.non_finite=skip", "train.non_finite_skips=3", "method.base=flexmatch"]].concat();
    let folder = bench.folder("run");
    let stop = AtomicBool::new(false);
    let error = Trainer::new(&stop).start(bench.recipe(&settings), &folder).unwrap_err();
    assert!(matches!(error, TrainError::TooManySkips { skips: 4, .. }), "{error}");
    let notes: Vec<_> = inspect::events(&folder)
        .unwrap()
        .into_iter()
        .filter_map(|event| if let Event::Note(note) = event { Some(note.text) } else { None })
        .collect();
    assert_eq!(notes.len(), 3);
    assert!(notes[2].contains("not finite") && notes[2].ends_with("skipped, 3 of 3 that may be"), "{notes:?}");
    let again = resume(&folder).unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
}

#[test]
fn a_sample_that_cannot_be_used_is_named() {
    let bench = Bench::new();
    let folder = bench.train_until("run", 4, &["loader.on_corrupt=stop"]);
    // The pixels of the last training image are not those that were prepared.
    let path = bench.data().join("train-images-idx3-ubyte");
    let mut bytes = fs::read(&path).unwrap();
    for sample in 0..120 {
        bytes[16 + sample * 64] ^= 1;
    }
    fs::write(&path, bytes).unwrap();
    let error = resume(&folder).unwrap_err().to_string();
    assert!(error.starts_with("sample ") && error.contains("train-images-idx3-ubyte"), "{error}");
}

#[test]
fn a_run_can_go_on_without_checkpoints_and_says_so() {
    let bench = Bench::new();
    let whole = bench.train("whole", &["checkpoint.on_failure=go-on"]);
    let folder = bench.train_until("run", 1, &["checkpoint.on_failure=go-on"]);
    // A file where the checkpoint of step 4 is to be.
    fs::write(checkpoint(&folder, 4), "not a checkpoint").unwrap();
    let stop = AtomicBool::new(false);
    let stopping = crate::made::stopping(Trainer::new(&stop), 5, &stop);
    stopping.resume(&folder, None).unwrap();
    assert!(checkpoint(&folder, 5).is_dir());
    resume(&folder).unwrap();
    assert_eq!(differing(&whole, &folder), Vec::<String>::new());
}
