//! Numbers that are none, files that cannot be read, disks that are full.

use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_engine::error::EngineError;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::request::RunRequest;
use calmix_run::error::RunError;
use calmix_run::events::Event;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::sink::Sink;
use calmix_testkit::faulty_disk::{Fault, FaultyDisk};
use calmix_testkit::run_bytes::differing;
use calmix_testkit::sinks::Notes;
use calmix_train::trainer::{Outcome, TrainError, Trainer};

use crate::made::{Bench, assert_same, checkpoint, resume, steps};

/// A learning rate that no network survives.
const RUIN: [&str; 2] = ["optimiser.lr=1e30", "train.steps=30"];

#[test]
fn non_finite_loss_stops_before_it_is_saved() {
    let bench = Bench::new();
    let settings = [&RUIN[..], &["checkpoint.every=1"]].concat();
    let folder = bench.folder("run");
    let error = bench.start("run", &settings).unwrap_err();
    assert!(matches!(error, TrainError::Engine(EngineError::NotFinite { .. })), "{error}");
    let logged = steps(&folder).len() as u64;
    assert_eq!(inspect::inspect(&folder).unwrap().step, Some(logged), "only the last good step is kept");
    // Again, the same.
    assert_eq!(resume(&folder).unwrap_err().to_string(), error.to_string());
}

#[test]
fn non_finite_steps_are_skipped_and_counted() {
    let bench = Bench::new();
    let settings =
        [&RUIN[..], &["train.non_finite=skip", "train.non_finite_skips=3", "method.base=flexmatch"]].concat();
    let folder = bench.folder("run");
    let error = bench.start("run", &settings).unwrap_err();
    assert!(matches!(error, TrainError::TooManySkips { skips: 4, .. }), "{error}");
    let notes: Vec<_> = read::events(&folder)
        .unwrap()
        .into_iter()
        .filter_map(|event| if let Event::Note(note) = event { Some(note.text) } else { None })
        .collect();
    assert_eq!(notes.len(), 3);
    assert!(
        notes[2].contains("not finite") && notes[2].ends_with("step skipped (3 of at most 3)"),
        "{notes:?}"
    );
    let again = resume(&folder).unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
}

/// Two groups of six rows draw from ten labelled samples, so some are in both: a step that is skipped leaves them as they were,
/// and all samples and the method's state with them.
#[test]
fn skipped_step_is_undone_completely() {
    let bench = Bench::new();
    let settings = [
        &RUIN[..],
        &["train.non_finite=skip", "train.groups=2", "labels.count=1", "labels.validation=0"],
        &["method.base=flexmatch", "checkpoint.every=1", "checkpoint.keep=30", "evaluate.every=100"],
    ]
    .concat();
    let folder = bench.folder("run");
    let error = bench.start("run", &settings).unwrap_err();
    assert!(matches!(error, TrainError::TooManySkips { .. }), "{error}");
    let events = read::events(&folder).unwrap();
    let skipped: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Note(note) if note.text.contains("skipped") => Some(note.step),
            _ => None,
        })
        .collect();
    assert!(skipped.len() > 5 && skipped[0] > 1, "{skipped:?}");
    for file in ["labelled.safetensors", "samples-0.safetensors", "samples-1.safetensors", "live.safetensors"]
    {
        let at = |step| fs::read(checkpoint(&folder, step).join(file)).unwrap();
        let before = at(skipped[0] - 1);
        assert!(skipped.iter().all(|&step| at(step) == before), "{file}");
    }
}

#[test]
fn corrupt_sample_is_named() {
    let bench = Bench::new();
    // Whatever becomes of corrupt samples: these are others than the run began with.
    let folder = bench.train_until("run", 4, &["loader.on_corrupt=skip", "loader.corrupt_share=1"]);
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

/// Fails from one call that changes the disk to another, as a disk does that is full for a while.
fn full(from: usize, to: usize) -> Arc<FaultyDisk> {
    Arc::new(FaultyDisk::new(Fault::Once(ErrorKind::StorageFull), from).until(to))
}

/// The disk of the run's folder is away for a few calls, again and again: the run waits, and ends as if nothing had been.
#[test]
fn a_run_folder_that_is_away_for_a_while_is_waited_for() {
    let bench = Bench::new();
    let settings = ["checkpoint.every=2"];
    let whole = bench.train("whole", &settings);
    let stop = AtomicBool::new(false);
    let calls = {
        let disk = FaultyDisk::sound();
        Trainer::new(RunRequest::new(&stop).on_disk(disk.clone()))
            .start(&bench.recipe(&settings), &bench.folder("count"))
            .unwrap();
        disk.calls().len()
    };
    for at in (calls / 4..calls - 4).step_by(calls / 9) {
        let disk = Arc::new(FaultyDisk::new(Fault::Once(ErrorKind::TimedOut), at).until(at + 9));
        let folder = bench.folder(&format!("away-{at}"));
        let outcome = Trainer::new(RunRequest::new(&stop).on_disk(disk.clone()))
            .start(&bench.recipe(&settings), &folder);
        assert!(matches!(&outcome, Ok(Outcome::Finished(_))), "{} at {at}: {outcome:?}", disk.struck());
        assert_same(&whole, &folder, &format!("{} at {at}", disk.struck()));
    }
}

/// Calls a function after a number of logged steps.
struct At<F>(u64, Option<F>);

impl<F: FnOnce()> Sink for At<F> {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        if matches!(event, Event::Step(step) if step.step == self.0)
            && let Some(call) = self.1.take()
        {
            call();
        }
        Ok(())
    }
}

/// Data that cannot be read any more, long after the last checkpoint: the state is saved before the run ends, and
/// nothing takes the place of the samples. With the data back, the run ends as if nothing had been.
#[test]
fn changed_data_stops_the_run_with_its_state_saved() {
    let bench = Bench::new();
    let settings = ["checkpoint.every=100", "evaluate.every=100", "loader.memory=0"];
    let whole = bench.train("whole", &settings);
    let (folder, path) = (bench.folder("run"), bench.data().join("train-images-idx3-ubyte"));
    let bytes = fs::read(&path).unwrap();
    let changed: Vec<u8> = bytes.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at >= 16)).collect();
    let stop = AtomicBool::new(false);
    // In place: the loader has the file open.
    let change = At(5, Some(|| fs::write(&path, &changed).unwrap()));
    let error = Trainer::new(RunRequest::new(&stop).sink(change))
        .start(&bench.recipe(&settings), &folder)
        .unwrap_err();
    assert!(matches!(&error, TrainError::Lifecycle(LifecycleError::Data(_))), "{error}");
    assert!(error.to_string().contains("when prepared; prepare the dataset again"), "{error}");
    let last = read::events(&folder).unwrap().last().map(Event::step);
    assert!(last >= Some(5) && inspect::inspect(&folder).unwrap().step == last, "{last:?}");
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
    assert_eq!(differing(&whole, &folder), Vec::<String>::new());
}

#[test]
fn full_disk_stops_the_run_or_is_waited_out() {
    let bench = Bench::new();
    let go_on = ["checkpoint.on_failure=go-on", "checkpoint.every=2"];
    let whole = bench.train("whole", &go_on);
    let stop = AtomicBool::new(false);
    let calls = {
        let disk = full(usize::MAX, usize::MAX);
        let recipe = bench.recipe(&go_on);
        Trainer::new(RunRequest::new(&stop).on_disk(disk.clone()))
            .start(&recipe, &bench.folder("count"))
            .unwrap();
        disk.calls()
    };
    // After the files of the beginning. A run that cannot write tries little: a few calls are some steps.
    let (from, to) = (calls.len() / 4, calls.len() / 4 + 8);
    let folder = bench.folder("waits");
    let mut notes = Vec::new();
    let waiting = Trainer::new(RunRequest::new(&stop).on_disk(full(from, to)).sink(Notes(&mut notes)));
    assert!(matches!(waiting.start(&bench.recipe(&go_on), &folder).unwrap(), Outcome::Finished(_)));
    assert_eq!(differing(&whole, &folder), Vec::<String>::new());
    assert!(notes.iter().any(|note| note.contains("space")), "{notes:?}");

    let folder = bench.folder("stops");
    let recipe = bench.recipe(&["checkpoint.every=2"]);
    let error =
        Trainer::new(RunRequest::new(&stop).on_disk(full(from, to))).start(&recipe, &folder).unwrap_err();
    assert!(error.to_string().contains("space"), "{error}");
    assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
    let changed =
        ["checkpoints/step-000000012/MANIFEST", "checkpoints/step-000000012/recipe.toml", "recipe.toml"];
    assert_eq!(differing(&whole, &folder), changed);
}

/// A kill between any two writes, and within one: the moments that no clock hits on purpose.
#[test]
fn a_kill_at_any_write_changes_nothing() {
    let bench = Bench::new();
    let settings = ["train.steps=4", "checkpoint.every=2", "evaluate.every=3", "selection=best-validation"];
    let stop = AtomicBool::new(false);
    let whole = bench.folder("whole");
    let sound = FaultyDisk::sound();
    Trainer::new(RunRequest::new(&stop).on_disk(sound.clone()))
        .start(&bench.recipe(&settings), &whole)
        .unwrap();
    let calls = sound.calls().len();
    for at in (0..calls).step_by(3) {
        let fault = if at % 2 == 0 { Fault::Killed } else { Fault::KilledWithin };
        let disk = Arc::new(FaultyDisk::new(fault, at));
        let folder = bench.folder(&format!("killed-{at}"));
        let killed = Trainer::new(RunRequest::new(&stop).on_disk(disk.clone()))
            .start(&bench.recipe(&settings), &folder);
        // Behind the last checkpoint there is only what no longer matters to remove.
        assert!(killed.is_err() || at > calls - 5 && ["rename", "remove folder"].contains(&disk.struck()));
        let again = Trainer::new(RunRequest::new(&stop).on_disk(FaultyDisk::sound()));
        let outcome = if read::has_begun(&folder) {
            again.resume(&folder, None)
        } else {
            again.start(&bench.recipe(&settings), &folder)
        };
        assert!(outcome.is_ok(), "{} at call {at} of {calls}: {outcome:?}", disk.struck());
        assert_same(&whole, &folder, &format!("{} at call {at} of {calls}", disk.struck()));
        fs::remove_dir_all(folder).unwrap();
    }
}
