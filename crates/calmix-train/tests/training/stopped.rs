//! A run that was stopped ends as one that was not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use calmix_lifecycle::request::RunRequest;
use calmix_recipe::Resolved;
use calmix_testkit::run_bytes::{bytes, differing};
use calmix_testkit::sinks::Notes;
use calmix_testkit::tier;
use calmix_train::trainer::{Outcome, StepPhase, Trainer};

use crate::made::{Bench, checkpoint, resume};

#[test]
fn resume_is_bit_identical_for_every_method() {
    let bench = Bench::new();
    for (name, settings) in [
        ("supervised", &["method.base=supervised"][..]),
        (
            "pseudo-mixup",
            &["method.base=supervised-pseudo-mixup", "method.mixup.guidance.averaging=exponential"],
        ),
        (
            "freematch",
            &["method.base=freematch", "method.mixup.pairing=all", "method.logit_penalty.weight=0.1"],
        ),
        ("fixmatch", &["method.base=fixmatch", "method.fixmatch.threshold=0.2"]),
        ("flexmatch", &["method.base=flexmatch", "method.flexmatch.threshold=0.2", "evaluate.online=true"]),
        ("softmatch", &["method.base=softmatch", "selection=best-validation"]),
        ("running", &["method.base=softmatch", "method.mixup.guidance.split=running", "train.step=lean"]),
        (
            "ready",
            &[
                "method.base=fixmatch",
                "method.mixup.start.rule=utilisation",
                "method.mixup.start.level=0.01",
                "method.fixmatch.threshold=0.2",
                "selection=median",
            ],
        ),
        ("released", &["preset=released-code", "method.mixup.start.step=3", "train.precision=bf16"]),
    ] {
        let whole = bench.train(&format!("{name}-whole"), settings);
        for stop in [1, 5, 7] {
            let folder = bench.train_until(&format!("{name}-{stop}"), stop, settings);
            assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
            assert_eq!(differing(&whole, &folder), Vec::<String>::new(), "{name}, stopped at {stop}");
        }
    }
}

#[test]
fn run_can_be_stopped_at_every_step() {
    let bench = Bench::new();
    let settings = ["method.base=flexmatch", "method.flexmatch.threshold=0.2"];
    let whole = bench.train("whole", &settings);
    let folder = bench.train_until("stopped", 1, &settings);
    // Told to stop before it begins, it has nothing to do, and says where it is.
    let stopped = Trainer::new(RunRequest::new(&AtomicBool::new(true))).resume(&folder, None).unwrap();
    assert_eq!(stopped, Outcome::Stopped { step: 1 });
    for step in 2..12 {
        let stop = AtomicBool::new(false);
        let trainer = Trainer::new(crate::made::stopping(step, &stop));
        assert_eq!(trainer.resume(&folder, None).unwrap(), Outcome::Stopped { step });
    }
    assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
    assert_eq!(differing(&whole, &folder), Vec::<String>::new());
    // Resuming a finished run changes nothing.
    let Outcome::AlreadyFinished(finished) = resume(&folder).unwrap() else { panic!("not finished") };
    assert_eq!(finished.step, 12);
    assert_eq!(differing(&whole, &folder), Vec::<String>::new());
}

/// Trains and asks the run to stop at the n-th place at which an evaluation can hear of it; how it ended, and how many such
/// places it came to.
fn stop_in_evaluation(recipe: &Resolved, folder: &Path, place: u64) -> (Outcome, u64) {
    let stop: &AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let places = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&places);
    let trainer = Trainer::new(RunRequest::new(stop)).watched(move |phase, _| {
        if phase == StepPhase::Evaluate && count.fetch_add(1, Ordering::Relaxed) == place {
            stop.store(true, Ordering::Relaxed);
        }
    });
    (trainer.start(recipe, folder).unwrap(), places.load(Ordering::Relaxed))
}

#[test]
fn abandoned_evaluation_is_repeated_on_resume() {
    let bench = Bench::new();
    for (name, settings) in [
        ("last", &["evaluate.online=true", "evaluate.every=5"][..]),
        ("best", &["selection=best-validation", "evaluate.every=4"]),
    ] {
        let settings = [settings, &["evaluate.batch=16", "evaluate.bootstrap=3"]].concat();
        let recipe = bench.recipe(&settings);
        let whole = bench.folder(&format!("{name}-whole"));
        let (outcome, places) = stop_in_evaluation(&recipe, &whole, u64::MAX);
        assert!(matches!(outcome, Outcome::Finished(_)) && places > 20, "{outcome:?}, {places}");
        let mut steps = std::collections::BTreeSet::new();
        // Every fourth request still comes in each of the three evaluations.
        let interval = if tier::is_exhaustive() { 1 } else { 4 };
        for place in (0..places).step_by(interval) {
            let folder = bench.folder(&format!("{name}-{place}"));
            let (outcome, heard) = stop_in_evaluation(&recipe, &folder, place);
            let Outcome::Stopped { step } = outcome else { panic!("{name}, {place}: {outcome:?}") };
            assert_eq!(heard, place + 1, "{name}: it went on after the request");
            assert!(checkpoint(&folder, step).exists(), "{name}, {place}: step {step} is lost");
            assert!(!folder.join("result.json").exists(), "{name}, {place}");
            steps.insert(step);
            assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
            assert_eq!(differing(&whole, &folder), Vec::<String>::new(), "{name}, {place} of {places}");
            std::fs::remove_dir_all(&folder).unwrap();
        }
        assert_eq!(steps.len(), 3, "two evaluations on the way and the last one: {steps:?}");
    }
}

#[test]
fn resume_with_other_threads_warns() {
    let bench = Bench::new();
    let said = |folder: &Path, threads: &str| {
        let mut notes = Vec::new();
        let settings = bench.recipe(&[threads]);
        Trainer::new(RunRequest::new(&AtomicBool::new(false)).sink(Notes(&mut notes)))
            .resume(folder, Some(&settings))
            .unwrap();
        notes
    };
    let same = bench.train_until("same", 3, &[]);
    assert_eq!(said(&same, "train.threads=1"), Vec::<String>::new());
    let other = bench.train_until("other", 3, &[]);
    assert_eq!(said(&other, "train.threads=2"), ["the device or the number of threads has changed"]);
}

/// However often it is stopped, a run ends with the predictions of its last evaluations, and those of its result.
#[test]
fn old_predictions_are_removed_as_without_a_stop() {
    let bench = Bench::new();
    let settings =
        ["evaluate.every=2", "evaluate.keep_predictions=2", "train.steps=9", "selection=best-validation"];
    let whole = bench.train("whole", &settings);
    let stopped = bench.train_until("stopped", 5, &settings);
    resume(&stopped).unwrap();
    assert!(bytes(&whole) == bytes(&stopped));
    let names: std::collections::BTreeSet<String> = std::fs::read_dir(whole.join("predictions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy()[..14].to_owned())
        .collect();
    let result = calmix_run::read::result(&whole).unwrap().unwrap();
    let expected = [8, 9, result.step].map(|step| format!("step-{step:09}"));
    assert_eq!(names, expected.into(), "the last two evaluations and the result");
}
