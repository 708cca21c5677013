//! Heads on the features of a frozen backbone.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use calmix_heads::HeadsError;
use calmix_heads::evaluate_head::evaluate_head_run;
use calmix_heads::images::PagePart;
use calmix_heads::trainer;
use calmix_lifecycle::evaluation::EvalOutput;
use calmix_lifecycle::request::RunRequest;
use calmix_metrics::fitted_calibrator::{FitRule, FittedOn};
use calmix_metrics::predictions::EvalSet;
use calmix_run::error::RunError;
use calmix_run::read;
use calmix_run::result::HeadName;
use calmix_run::result::Outcome;
use calmix_run::sink::{Sink, WorkProgress};
use calmix_testkit::run_bytes::{bytes, differing};

use super::made::{Bench, resume};

/// A bench, and the settings of heads that share a cache.
pub(crate) fn heads() -> (Bench, Vec<String>) {
    let bench = Bench::new();
    let settings = vec![format!("network.cache={}", bench.folder("features").display())];
    (bench, settings)
}

/// Evaluates a run again.
fn evaluated(folder: &Path) -> EvalOutput {
    evaluate_head_run(folder, None, &AtomicBool::new(false)).unwrap()
}

fn with<'a>(settings: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    settings.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

#[test]
fn head_resume_is_bit_identical_for_every_method() {
    let (bench, settings) = heads();
    for (name, more) in [
        ("supervised", &["method.base=supervised", "method.mixup.pairing=none"][..]),
        ("fixmatch", &["method.base=fixmatch", "method.fixmatch.threshold=0.2", "network.head=hidden"]),
        ("flexmatch", &["method.base=flexmatch", "method.mixup.pairing=random"]),
        ("softmatch", &["method.base=softmatch"]),
        ("freematch", &["method.base=freematch"]),
    ] {
        let mut settings = with(&settings, more);
        // A run that goes on from its folder keeps its features there, wherever its recipe says.
        settings.retain(|setting| !setting.starts_with("network.cache="));
        let whole = bench.train(&format!("{name}-whole"), &settings);
        for stop in [1, 7] {
            let (folder, outcome) = bench.stop_at(&format!("{name}-{stop}"), stop, &settings);
            // Nothing is saved: heads are trained again, within seconds.
            assert_eq!(outcome, Outcome::Stopped { step: 0 });
            assert!(!folder.join("result.json").exists());
            assert_eq!(fs::read_dir(folder.join("checkpoints")).into_iter().flatten().count(), 0);
            assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
            assert_eq!(differing(&whole, &folder), Vec::<String>::new(), "{name}, stopped at {stop}");
        }
        assert!(matches!(resume(&whole).unwrap(), Outcome::AlreadyFinished(_)));
        let result = read::result(&whole).unwrap().unwrap();
        assert_eq!(result.heads.is_some(), name != "supervised", "{name}");
        let info = read::model_info(&whole).unwrap();
        let head = info.head.unwrap();
        assert_eq!((head.features, head.dimensions), (64, 16));
        let fitted = info.calibration.unwrap();
        // Every label evaluates a head that did not see it.
        assert_eq!(
            (fitted.fitted_on, fitted.samples, fitted.rule),
            (FittedOn::OutOfFold, 40, FitRule::ClearGain)
        );
        assert_eq!(info.held_out.unwrap().right.len(), 40);
        // From the weights alone, with the calibrator that was fitted on the folds.
        let again = evaluated(&whole);
        let seen = again.evaluations.iter().find(|seen| seen.split.word() == "test").unwrap();
        let stored = result.evaluations.iter().find(|seen| seen.split.word() == "test").unwrap();
        assert_eq!(seen.metrics, stored.metrics, "{name}");
    }
}

#[test]
fn labels_alone_head_is_kept_if_clearly_better() {
    let (bench, settings) = heads();
    for (name, more) in [
        // Nearly the labels alone: who is better by a hair is not clear.
        (
            "alike",
            &["method.base=fixmatch", "method.mixup.pairing=none", "method.unlabelled_weight=0.001"][..],
        ),
        // Pseudo-labels of the first steps decide: the labels alone do better.
        ("wild", &["method.base=fixmatch", "method.fixmatch.threshold=0.0", "method.unlabelled_weight=50.0"]),
    ] {
        let folder = bench.train(name, &with(&settings, more));
        let result = read::result(&folder).unwrap().unwrap();
        let heads = result.heads.unwrap();
        let [own, alone] = heads.candidates.as_slice() else { panic!("{:?}", heads.candidates) };
        assert_eq!([own.name, alone.name], [HeadName::Recipe, HeadName::LabelsAlone]);
        assert_ne!(own.kept, alone.kept);
        let difference = heads.nll_difference.as_ref().unwrap();
        let apart = own.nll.unwrap() - alone.nll.unwrap();
        assert!((difference.estimate - apart).abs() < 1e-9, "{name}: {difference:?}, {apart}");
        // Student's factor of 40 labels is 2.02.
        let standard_error = (difference.high - difference.estimate) / 2.02;
        let supervised = difference.estimate > standard_error;
        assert_eq!(alone.kept, supervised, "{name}: {difference:?}");
        let metrics = if supervised { alone } else { own };
        assert_eq!(metrics.evaluations, result.evaluations, "{name}");
        assert_eq!(supervised, name == "wild", "{difference:?}");
    }
}

#[test]
fn labels_out_of_fold_evaluate_a_head() {
    let (bench, settings) = heads();
    let folder = bench.train("untested", &with(&settings, &["dataset.test="]));
    let result = read::result(&folder).unwrap().unwrap();
    let [seen] = result.evaluations.as_slice() else { panic!("{:?}", result.evaluations) };
    assert_eq!((seen.split, seen.samples), (EvalSet::OutOfFold, 40));
    assert!(seen.calibrated.is_some() && seen.intervals.is_some());
    let selected = &result.finished.selected[&result.selection];
    assert_eq!((selected.on, selected.samples), (EvalSet::OutOfFold, 40));
    assert_eq!(selected.metrics, seen.metrics);
    // The heads of folds are not kept, but their predictions are.
    let again = evaluated(&folder);
    assert_eq!(again.evaluations.len(), 1);
    assert_eq!(again.evaluations[0].metrics, seen.metrics);
}

#[test]
fn folds_and_the_second_head_can_be_left_out() {
    let (bench, settings) = heads();
    let folder = bench.train("no-folds", &with(&settings, &["network.folds=0"]));
    let result = read::result(&folder).unwrap().unwrap();
    let info = read::model_info(&folder).unwrap();
    assert!(info.calibration.is_none() && info.held_out.is_none());
    assert_eq!(result.uncalibrated.unwrap().held_out, 0);
    let heads = result.heads.unwrap();
    assert_eq!((heads.kept(), heads.nll_difference), (Some(HeadName::Recipe), None));
    let folder = bench.train("one-head", &with(&settings, &["network.labels_alone=false"]));
    assert!(read::result(&folder).unwrap().unwrap().heads.is_none());
    assert_eq!(read::model_info(&folder).unwrap().held_out.unwrap().right.len(), 40);
}

fn is_page(path: &str) -> bool {
    Path::new(path).file_name().is_some_and(|name| name.to_string_lossy().starts_with("page-"))
}

#[test]
fn feature_cache_is_shared_per_backbone() {
    let (bench, settings) = heads();
    bench.train("first", &with(&settings, &[]));
    let made = bytes(&bench.folder("features"));
    assert!(made.keys().any(|path| is_page(path)));
    // The same labels, another method: nothing is made.
    bench.train("second", &with(&settings, &["method.base=fixmatch"]));
    assert_eq!(bytes(&bench.folder("features")), made);
    // A backbone of other weights never meets them.
    let other = bench.write_backbone("other.safetensors", 3);
    let weights = format!("network.weights={}", other.display());
    bench.train("third", &with(&settings, &[&weights]));
    let folders = fs::read_dir(bench.folder("features")).unwrap().count();
    assert_eq!(folders, 2);
    // Damage is noticed, and made again.
    for (path, bytes) in made.iter().filter(|(path, _)| is_page(path)) {
        let mut damaged = bytes.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(bench.folder("features").join(path), damaged).unwrap();
    }
    let again = bench.train("again", &with(&settings, &[]));
    assert_eq!(differing(&again, &bench.folder("first")), Vec::<String>::new());
    let repaired = bytes(&bench.folder("features"));
    assert!(made.iter().all(|(path, bytes)| repaired.get(path) == Some(bytes)));
}

#[test]
fn feature_cache_bytes_do_not_depend_on_processes() {
    let (bench, settings) = heads();
    let prepared = bench.prepared_table();
    let stop = AtomicBool::new(false);
    let make = |cache: &str, part: PagePart| {
        let cache = format!("network.cache={}", bench.folder(cache).display());
        let recipe = bench.recipe(&with(&settings, &[&prepared, &cache]));
        trainer::make_features(RunRequest::new(&stop), &recipe, part)
    };
    make("one", PagePart::ALL).unwrap();
    let wanted = bytes(&bench.folder("one"));
    for of in [2, 4] {
        let cache = format!("of-{of}");
        std::thread::scope(|scope| {
            let made: Vec<_> = (0..of)
                .map(|index| {
                    scope.spawn({
                        let cache = &cache;
                        let make = &make;
                        move || make(cache, PagePart { index, of })
                    })
                })
                .collect();
            for made in made {
                made.join().unwrap().unwrap();
            }
        });
        assert_eq!(bytes(&bench.folder(&cache)), wanted, "{of} processes");
    }
    // Stopped at once, it has made nothing that is not whole, and goes on.
    let stopping = AtomicBool::new(false);
    let cache = format!("network.cache={}", bench.folder("stopped").display());
    let recipe = bench.recipe(&with(&settings, &[&prepared, &cache]));
    let stopped = trainer::make_features(
        RunRequest::new(&stopping).sink(StopAtFeatures(&stopping)),
        &recipe,
        PagePart::ALL,
    );
    assert!(matches!(stopped, Err(HeadsError::Stopped)), "{stopped:?}");
    make("stopped", PagePart::ALL).unwrap();
    assert_eq!(bytes(&bench.folder("stopped")), wanted);
}

/// Asks for a stop as soon as features are made.
struct StopAtFeatures<'a>(&'a AtomicBool);

impl Sink for StopAtFeatures<'_> {
    fn work(&mut self, progress: &WorkProgress) -> Result<(), RunError> {
        assert!(progress.done <= progress.total);
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn unsupported_head_settings_are_refused() {
    let (bench, settings) = heads();
    let refused = |more: &[&str]| {
        let layers = bench.layers(&with(&settings, more));
        layers.resolve().and_then(|recipe| recipe.ready()).unwrap_err().to_string()
    };
    assert!(refused(&["network.weights="]).contains("a head needs a pretrained backbone"));
    assert!(refused(&["train.micro_batches=2"]).contains("a head is trained in one process"));
    assert!(refused(&["method.base_loss=twice"]).contains("which a head does not have"));
    assert!(refused(&["method.mixup.guidance.space=pixel"]).contains("a head reads vectors, not pixels"));
    assert!(refused(&["selection=best-test"]).contains("selected on out-of-fold labels"));
    // At such a rate every unit of the hidden layer dies.
    let recipe = bench.recipe(&with(&settings, &["network.head=hidden", "optimiser.lr=3.0"]));
    assert!(recipe.warnings.iter().any(|warning| warning.to_string().contains("units die")));
    let recipe = bench.recipe(&with(&settings, &["network.head=hidden", "optimiser.lr=0.1"]));
    assert!(!recipe.warnings.iter().any(|warning| warning.to_string().contains("units die")));
}
