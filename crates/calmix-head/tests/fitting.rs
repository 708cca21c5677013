//! Whole fits: the same bits on any number of threads, the choice of a head, and what is refused.

mod stops;

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_core::method::{BaseLoss, Method};
use calmix_core::mixup::Pairing;
use calmix_core::preset;
use calmix_core::pseudo::{Base, SoftMatch};
use calmix_core::schedule::Start;
use calmix_head::fit::{Candidate, HeadFit};
use calmix_head::progress::FitProgress;
use calmix_head::projection::Projection;
use calmix_head::samples::{HeadSamples, ValidationSamples};
use calmix_head::settings::HeadSettings;
use calmix_head::{HeadError, fit};
use calmix_metrics::predictions::{EvalSet, Predictions};

use crate::scene::{CLASSES, Scene, settings};

fn softmatch() -> Method {
    let mut method = preset::paper(Base::SoftMatch(SoftMatch::default()));
    method.mixup.start = Start::at(0);
    method
}

fn fit_with(scene: &Scene, settings: &HeadSettings, threads: usize) -> Result<HeadFit, HeadError> {
    fit(
        scene.samples(),
        &scene.rows(true),
        None,
        settings,
        threads,
        &FitProgress::new(&AtomicBool::new(false)),
    )
}

fn bits(fit: &HeadFit) -> Vec<u32> {
    let heads = fit.heads.iter();
    let numbers = heads.flat_map(|head| {
        let trained = [head.trained.weights.numbers(), head.trained.ema.numbers(), &head.predictions.logits];
        trained.concat()
    });
    numbers.map(f32::to_bits).collect()
}

#[test]
fn threads_do_not_change_a_bit() {
    let scene = Scene::new(6);
    for hidden in [None, Some(12)] {
        let settings = HeadSettings { hidden, ..settings(softmatch()) };
        let alone = fit_with(&scene, &settings, 1).expect("a head");
        assert_eq!(alone.heads.len(), 2);
        assert_eq!(alone.heads[1].candidate, Candidate::LabelsAlone);
        for threads in [1, 2, 8] {
            let again = fit_with(&scene, &settings, threads).expect("a head");
            assert_eq!(bits(&again), bits(&alone), "{threads} threads");
            assert_eq!(again.selected, alone.selected);
        }
        assert!(alone.nll_difference.is_some());
    }
}

#[test]
fn mixtures_end_with_the_number_of_labels() {
    // Six labels per class.
    let scene = Scene::new(6);
    let mut method = softmatch();
    method.mixup.pairing = Pairing::Random;
    let of = |method| bits(&fit_with(&scene, &settings(method), 2).expect("a head"));
    let mixed = of(method);
    let mut none = method;
    none.mixup.pairing = Pairing::None;
    let none = of(none);
    assert_ne!(mixed, none);
    for (most, expected) in [(0, &mixed), (5, &none), (6, &mixed), (u32::MAX, &mixed)] {
        method.mixup.max_labels_per_class = most;
        assert_eq!(&of(method), expected, "up to {most}");
    }
}

#[test]
fn every_label_is_predicted_by_a_head_without_it_and_the_head_is_good() {
    let scene = Scene::new(6);
    let fitted = fit_with(&scene, &settings(softmatch()), 2).expect("a head");
    let head = fitted.head().expect("a head is kept");
    assert_eq!(head.predictions.split, EvalSet::OutOfFold);
    assert_eq!(head.predictions.labels.len(), 6 * CLASSES);
    assert!(head.calibrator.calibrator().is_some());
    let rows: Vec<usize> = (6 * CLASSES..200).collect();
    let logits =
        head.trained.ema.forward(&scene.samples().unaugmented(&rows).expect("rows")).expect("logits").logits;
    let right = rows.iter().zip(logits.chunks_exact(CLASSES)).filter(|&(&row, z)| {
        let top = (0..CLASSES).max_by(|&a, &b| z[a].total_cmp(&z[b]));
        top.map(|class| class as u32) == scene.labels[row]
    });
    let right = right.count();
    assert!(right * 10 > rows.len() * 7, "{right} of {}", rows.len());
    assert_eq!(head.trained.log.len(), 6);
}

#[test]
fn chosen_labels_are_trained_on_but_calibrate_nothing() {
    let scene = Scene::new(6);
    let settings = settings(softmatch());
    let chosen: Vec<usize> = (0..12).collect();
    let fit_samples = |samples| {
        let stop = AtomicBool::new(false);
        fit(samples, &scene.rows(true), None, &settings, 2, &FitProgress::new(&stop)).expect("a head")
    };
    let all = fit_samples(scene.samples());
    let marked = fit_samples(HeadSamples { chosen: &chosen, ..scene.samples() });
    let head = |fitted: &HeadFit| fitted.heads[0].clone();
    assert_eq!(head(&marked).trained.ema.numbers(), head(&all).trained.ema.numbers());
    let ids = scene.samples().ids;
    assert_eq!(head(&marked).predictions.ids, ids[12..30]);
    assert_eq!(head(&marked).chosen.ids, ids[..12]);
    assert_eq!((head(&all).predictions.ids.len(), head(&all).chosen.ids.len()), (30, 0));
    let logits = |predictions: &Predictions| predictions.logits.clone();
    let marked_logits = [logits(&head(&marked).chosen), logits(&head(&marked).predictions)].concat();
    assert_eq!(marked_logits, logits(&head(&all).predictions));
    assert_ne!(marked.heads[0].nll, all.heads[0].nll);
}

#[test]
fn class_with_one_chosen_label_holds_out_its_random_one() {
    let scene = Scene::new(2);
    let stop = AtomicBool::new(false);
    // The first label of each class is chosen, the second drawn at random.
    let chosen: Vec<usize> = (0..CLASSES).collect();
    let samples = HeadSamples { chosen: &chosen, ..scene.samples() };
    let progress = FitProgress::new(&stop);
    let fitted = fit(samples, &scene.rows(true), None, &settings(softmatch()), 2, &progress).expect("a head");
    assert_eq!(fitted.heads[0].predictions.ids.len(), CLASSES);
    assert!(fitted.heads[0].unseen.is_empty());
}

#[test]
fn validation_samples_take_the_place_of_folds() {
    let scene = Scene::new(6);
    let samples = scene.samples();
    let rows: Vec<usize> = (100..160).collect();
    let vectors = samples.unaugmented(&rows).expect("rows");
    let labels: Vec<u32> = rows.iter().map(|&row| scene.labels[row].expect("a label")).collect();
    let ids: Vec<u64> = rows.iter().map(|&row| samples.ids[row]).collect();
    let validation = ValidationSamples {
        ids: &ids,
        vectors: Matrix::new(&vectors, rows.len(), samples.width()).expect("whole rows"),
        labels: &labels,
        groups: &[],
    };
    let stop = AtomicBool::new(false);
    let progress = FitProgress::new(&stop);
    let settings = settings(softmatch());
    let fitted = fit(samples, &scene.rows(true), Some(validation), &settings, 2, &progress).expect("a head");
    // Two heads, and none of folds.
    assert_eq!((progress.steps(), progress.total()), (2 * settings.steps, 2 * settings.steps));
    let predictions = &fitted.head().expect("kept").predictions;
    assert_eq!((predictions.split, predictions.labels.len()), (EvalSet::Validation, 60));
}

#[test]
fn what_does_not_apply_is_refused_in_words() {
    let scene = Scene::new(6);
    let refused = |settings: HeadSettings| {
        fit_with(&scene, &settings, 1).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let method = Method { base_loss: BaseLoss::Twice, ..softmatch() };
    assert!(refused(settings(method)).contains("method.base_loss"), "twice");
    let steep = HeadSettings { lr: 1e38, ..settings(softmatch()) };
    assert!(refused(steep).contains("finite"), "a learning rate that overflows");
    let stop = AtomicBool::new(true);
    let stop = FitProgress::new(&stop);
    let stopped = fit(scene.samples(), &scene.rows(true), None, &settings(softmatch()), 1, &stop);
    assert!(matches!(stopped, Err(HeadError::Stopped)));
    let mut samples = scene.samples();
    samples.labels = &samples.labels[1..];
    let uneven = fit(samples, &scene.rows(true), None, &settings(softmatch()), 1, &stop);
    assert!(uneven.expect_err("refused").to_string().contains("199 labels"));
    let broken = [1.0, f32::NAN];
    let projection = Projection::fit(Matrix::new(&broken, 1, 2).expect("a row"), 1);
    assert!(projection.expect_err("refused").to_string().contains("row 0"));
}
