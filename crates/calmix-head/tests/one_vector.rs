//! Heads on one vector per sample: against other packages, against each other, and on input that has little to offer.

mod golden;
mod neighbours;
mod scene;
mod weights;

use calmix_core::matrix::Matrix;
use calmix_head::fit::{Candidate, FittedHead, HeadFit};
use calmix_head::gaussian_mixture::{GaussianMixture, gaussian_mixture};
use calmix_head::logistic_regression::{MIN_GAIN, STRENGTHS, logistic_regression};
use calmix_head::network::Head;
use calmix_head::samples::{HeadSamples, TrainingRows, ValidationSamples};
use calmix_head::settings::HeadSettings;
use calmix_head::{HeadError, fit};
use calmix_metrics::predictions::EvalSet;

use scene::{Scene, settings, with_progress};

const ALL: [Candidate; 6] = [
    Candidate::LogisticRegression,
    Candidate::Em,
    Candidate::BalancedEm,
    Candidate::Neighbours,
    Candidate::LrEm,
    Candidate::LrNeighbours,
];

fn fit_all(scene: &Scene, rows: &TrainingRows, settings: &HeadSettings, threads: usize) -> HeadFit {
    with_progress(|progress| fit(scene.samples(), rows, None, settings, threads, progress)).expect("heads")
}

fn bits(fitted: &HeadFit) -> Vec<u32> {
    let numbers = |head: &FittedHead| [head.trained.ema.numbers(), &head.predictions.logits].concat();
    fitted.heads.iter().flat_map(numbers).map(f32::to_bits).collect()
}

fn errors(head: &Head, scene: &Scene) -> usize {
    let rows: Vec<usize> = (0..scene.labels.len()).collect();
    let logits = head.forward(&scene.samples().unaugmented(&rows).expect("rows")).expect("logits").logits;
    let classes = head.shape().classes;
    let wrong = |(logits, label): &(&[f32], &Option<u32>)| {
        Some(calmix_core::softmax::argmax(logits) as u32) != **label
    };
    logits.chunks_exact(classes).zip(&scene.labels).filter(wrong).count()
}

#[test]
fn threads_change_no_bit_of_any_candidate() {
    let scene = Scene::clouds(600, 24, 5, 0.5);
    let rows = scene.rows(20);
    let alone = fit_all(&scene, &rows, &settings(), 1);
    let names: Vec<Candidate> = alone.heads.iter().map(|head| head.candidate).collect();
    assert_eq!(names, ALL);
    assert!(alone.nll_difference.is_some());
    for threads in [2, 8] {
        let again = fit_all(&scene, &rows, &settings(), threads);
        assert_eq!(bits(&again), bits(&alone), "{threads} threads");
        assert_eq!(again.selected, alone.selected);
        assert_eq!(again.learning_curve, alone.learning_curve);
    }
    let nll: Vec<f64> = alone.heads.iter().map(|head| head.mean_nll().expect("labels")).collect();
    assert!(nll.iter().all(|&other| other >= nll[alone.selected]), "{nll:?}");
    assert!(alone.configured().is_none() && alone.heads[0].trained.log.is_empty());
}

#[test]
fn em_beats_logistic_regression_on_planted_clouds() {
    let scene = Scene::clouds(2_000, 32, 10, 0.6);
    let rows = scene.rows(40);
    let fitted = fit_all(&scene, &rows, &settings(), 2);
    let errors: Vec<usize> = fitted.heads.iter().map(|head| errors(&head.trained.ema, &scene)).collect();
    let [regression, em, balanced, ..] = errors[..] else { unreachable!("six heads") };
    assert!(em * 4 < regression * 3 && balanced * 4 < regression * 3, "{errors:?}");
    assert_ne!(fitted.selected, 0, "{errors:?}");
    let difference = fitted.nll_difference.expect("both kinds");
    assert!(difference.high < 0.0, "{difference:?}");
}

#[test]
fn learning_curve_is_of_half_three_quarters_and_all() {
    let scene = Scene::clouds(1_000, 32, 5, 0.9);
    let curve = fit_all(&scene, &scene.rows(80), &settings(), 2).learning_curve.expect("a curve");
    let folds = settings().folds as f64;
    let sizes: Vec<f64> = curve.points.iter().map(|point| point.labels).collect();
    assert_eq!(sizes, [40.0, 60.0, 80.0 * (1.0 - 1.0 / folds)]);
    assert_eq!((curve.labels, curve.more, curve.now.n), (80, 80, 80));
    let first = curve.points[0].error;
    let last = curve.points[2].error;
    assert!(first > last && last > 0.0, "{curve:?}");
    let fitted = fit_all(&scene, &scene.rows(80), &settings(), 2);
    let kept = &fitted.head().expect("a head").predictions;
    let wrong = kept.logits.chunks_exact(5).zip(&kept.labels);
    let wrong = wrong.filter(|(logits, label)| calmix_core::softmax::argmax(logits) as u32 != **label);
    assert_eq!(last, wrong.count() as f64 / 80.0);
    assert!(fit_all(&scene, &scene.rows(15), &settings(), 2).learning_curve.is_none());
}

#[test]
fn learning_curve_is_tested_on_random_labels_alone() {
    let scene = Scene::clouds(1_000, 32, 5, 0.9);
    let rows = scene.rows(80);
    let chosen = rows.labelled[..30].to_vec();
    let samples = HeadSamples { chosen: &chosen, ..scene.samples() };
    let fitted =
        with_progress(|progress| fit(samples, &rows, None, &settings(), 2, progress)).expect("heads");
    let curve = fitted.learning_curve.expect("a curve");
    assert_eq!((curve.labels, curve.now.n, curve.points[0].labels), (80, 50, 40.0));
}

/// If all labels are predicted right out of fold, the most likely temperature is the lowest one, whatever the other samples are.
#[test]
fn separable_labels_do_not_scale_up_the_average() {
    let scene = Scene::clouds(400, 24, 4, 0.1);
    let settings = HeadSettings { neighbours: false, ..settings() };
    let fitted = fit_all(&scene, &scene.rows(16), &settings, 1);
    assert!(fitted.heads.iter().all(|head| errors(&head.trained.ema, &scene) == 0));
    let largest = |head: &FittedHead| {
        head.trained.ema.numbers().iter().fold(0.0_f32, |largest, number| largest.max(number.abs()))
    };
    let [parts @ .., average] = &fitted.heads[..] else { unreachable!("four heads") };
    assert_eq!(average.candidate, Candidate::LrEm);
    let of_parts = parts.iter().map(largest).fold(0.0, f32::max);
    assert!(largest(average) < 1.5 * of_parts, "{} of {of_parts}", largest(average));
}

#[test]
fn order_of_unlabelled_rows_changes_no_bit_of_em() {
    let scene = Scene::clouds(700, 80, 4, 0.5);
    let rows = scene.rows(16);
    let mut permuted = rows.clone();
    permuted.unlabelled.reverse();
    permuted.unlabelled.rotate_left(123);
    for settings in [GaussianMixture::PLAIN, GaussianMixture::BALANCED] {
        let [first, second] = [&rows, &permuted].map(|rows| {
            with_progress(|progress| gaussian_mixture(scene.samples(), rows, settings, progress))
                .expect("a head")
        });
        assert_eq!(first, second);
        // Zeros above the modelled dimensions.
        assert!(
            first.numbers().chunks_exact(80).take(4).all(|weight| weight[64..].iter().all(|&w| w == 0.0))
        );
    }
}

#[test]
fn validation_samples_choose_among_all_candidates() {
    let scene = Scene::clouds(400, 16, 4, 0.5);
    let samples = scene.samples();
    let held_out: Vec<usize> = (300..400).collect();
    let vectors = samples.unaugmented(&held_out).expect("rows");
    let labels: Vec<u32> = held_out.iter().map(|&row| scene.labels[row].expect("a label")).collect();
    let ids: Vec<u64> = held_out.iter().map(|&row| samples.ids[row]).collect();
    let validation = ValidationSamples {
        ids: &ids,
        vectors: Matrix::new(&vectors, held_out.len(), samples.width()).expect("whole rows"),
        labels: &labels,
        groups: &[],
    };
    let rows = TrainingRows { labelled: (0..16).collect(), unlabelled: (0..300).collect() };
    let settings = settings();
    let fitted = with_progress(|progress| {
        let fitted = fit(samples, &rows, Some(validation), &settings, 2, progress);
        assert_eq!((progress.steps(), progress.total()), (4, 4));
        fitted
    });
    let fitted = fitted.expect("heads");
    assert_eq!(fitted.heads.len(), ALL.len());
    for head in &fitted.heads {
        assert_eq!((head.predictions.split, head.predictions.labels.len()), (EvalSet::Validation, 100));
    }
}

#[test]
fn without_unlabelled_samples_logistic_regression_is_the_result() {
    let scene = Scene::clouds(100, 8, 3, 0.4);
    let rows = TrainingRows { labelled: (0..60).collect(), unlabelled: Vec::new() };
    let fitted = fit_all(&scene, &rows, &settings(), 2);
    assert_eq!(fitted.heads.len(), 1);
    assert_eq!(fitted.heads[0].candidate, Candidate::LogisticRegression);
    assert!(fitted.nll_difference.is_none() && fitted.configured().is_none());
}

#[test]
fn hidden_layer_is_refused() {
    let scene = Scene::clouds(100, 8, 3, 0.4);
    let hidden = HeadSettings { hidden: Some(4), ..settings() };
    let fitted = with_progress(|progress| fit(scene.samples(), &scene.rows(12), None, &hidden, 1, progress));
    assert!(matches!(fitted, Err(HeadError::Setting(_))));
}

#[test]
fn stopped_fit_says_so() {
    let scene = Scene::clouds(100, 8, 3, 0.4);
    let stop = std::sync::atomic::AtomicBool::new(true);
    let progress = calmix_head::progress::FitProgress::new(&stop);
    let rows = scene.rows(12);
    let stopped = logistic_regression(scene.samples(), &rows, &[1.0], MIN_GAIN, &progress);
    assert!(matches!(stopped, Err(HeadError::Stopped)));
    let stopped = gaussian_mixture(scene.samples(), &rows, GaussianMixture::PLAIN, &progress);
    assert!(matches!(stopped, Err(HeadError::Stopped)));
}

/// Every head of a fit is finite, whatever there is to learn from.
fn assert_finite(name: &str, scene: &Scene, rows: &TrainingRows) {
    let fitted = fit_all(scene, rows, &settings(), 2);
    assert_eq!(fitted.heads.len(), ALL.len(), "{name}");
    for head in &fitted.heads {
        let numbers = head.trained.ema.numbers().iter().chain(&head.predictions.logits);
        assert!(numbers.clone().all(|number| number.is_finite()), "{name}: {:?}", head.candidate);
        assert!(head.nll.iter().all(|nll| nll.is_finite()), "{name}: {:?}", head.candidate);
    }
}

#[test]
fn degenerate_input_gives_finite_heads() {
    let scene = Scene::clouds(200, 16, 5, 0.5);
    assert_finite("one label per class", &scene, &scene.rows(5));
    assert_finite("a class with one label", &scene, &scene.rows(16));
    let mut rows = scene.rows(30);
    rows.labelled.retain(|row| row % 5 != 3);
    assert_finite("a class without a label", &scene, &rows);
    rows.labelled.retain(|row| row % 5 == 0);
    assert_finite("a single class with labels", &scene, &rows);
    let scene = Scene::clouds(30, 100, 3, 0.5);
    assert_finite("fewer rows than dimensions", &scene, &scene.rows(6));
    let scene = Scene::clouds(300, 4, 2, 0.5);
    assert_finite("two classes", &scene, &scene.rows(8));
    let labels: Vec<u32> = (0..90).map(|row| row % 3).collect();
    let constant = |row: usize, d: usize| if d == 0 { 0.6 } else { 0.8 * f32::from(u8::from(row % 3 == d)) };
    let vectors = (0..90).flat_map(|row| (0..5).map(move |d| constant(row, d))).collect();
    let scene = Scene::of(vectors, 5, labels.clone(), 3);
    assert_finite("constant dimensions", &scene, &scene.rows(12));
    let scene = Scene::of(vec![0.0; 90 * 5], 5, labels, 3);
    assert_finite("vectors of zeros", &scene, &scene.rows(12));
}

#[test]
fn two_hundred_classes_give_finite_heads() {
    let scene = Scene::clouds(1_000, 70, 200, 0.5);
    let rows = scene.rows(400);
    let mut heads =
        with_progress(|progress| logistic_regression(scene.samples(), &rows, &STRENGTHS, MIN_GAIN, progress))
            .expect("heads");
    for settings in [GaussianMixture::PLAIN, GaussianMixture::BALANCED] {
        let head = with_progress(|progress| gaussian_mixture(scene.samples(), &rows, settings, progress));
        heads.push(head.expect("a head"));
    }
    for head in heads {
        assert!(head.numbers().iter().all(|number| number.is_finite()));
        assert!(errors(&head, &scene) < 800, "better than chance");
    }
}
