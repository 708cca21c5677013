//! Heads on neighbours: where they know more than linear heads, and what they leave as it is.

use calmix_core::rng::{Domain, Seed};
use calmix_head::fit::{Candidate, FittedHead, HeadFit};
use calmix_head::neighbours::{MAX_ROWS, fits};
use calmix_head::settings::HeadSettings;
use calmix_metrics::fitted_calibrator::FittedCalibrator;

use super::scene::{Scene, settings};
use super::{bits, errors, fit_all};

/// Each class is two clouds on opposite sides: no linear head tells them apart.
fn opposite_clouds(samples: usize, width: usize, classes: usize) -> Scene {
    let mut stream = Seed(3).stream(Domain::Init, 0, 0);
    let mut centres: Vec<f64> = Vec::new();
    for _ in 0..classes {
        let centre: Vec<f64> = (0..width).map(|_| stream.normal()).collect();
        centres.extend(&centre);
        centres.extend(centre.iter().map(|x| -x));
    }
    let mut vectors = Vec::with_capacity(samples * width);
    for sample in 0..samples {
        let cloud = sample % (2 * classes);
        let centre = &centres[cloud * width..(cloud + 1) * width];
        let point: Vec<f64> = centre.iter().map(|x| x + 0.5 * stream.normal()).collect();
        let length = point.iter().map(|x| x * x).sum::<f64>().sqrt();
        vectors.extend(point.iter().map(|x| (x / length) as f32));
    }
    let labels = (0..samples).map(|sample| (sample % (2 * classes) / 2) as u32).collect();
    Scene::of(vectors, width, labels, classes)
}

fn head(fitted: &HeadFit, candidate: Candidate) -> &FittedHead {
    fitted.heads.iter().find(|head| head.candidate == candidate).expect("a head")
}

#[test]
fn neighbours_win_where_classes_are_on_two_sides() {
    let scene = opposite_clouds(600, 16, 4);
    let fitted = fit_all(&scene, &scene.rows(48), &settings(), 2);
    let wrong = |candidate| errors(&head(&fitted, candidate).trained.ema, &scene);
    assert!(wrong(Candidate::Neighbours) < 30, "{}", wrong(Candidate::Neighbours));
    assert!(wrong(Candidate::BalancedEm) > 200, "{}", wrong(Candidate::BalancedEm));
    let kept = fitted.head().expect("a head");
    assert!(matches!(kept.candidate, Candidate::Neighbours | Candidate::LrNeighbours));
    assert!(fitted.nll_difference.expect("both kinds").high < 0.0);
}

#[test]
fn average_with_neighbours_has_the_mean_of_both_logits() {
    let scene = opposite_clouds(400, 12, 3);
    let fitted = fit_all(&scene, &scene.rows(30), &settings(), 1);
    let rows: Vec<usize> = (0..400).collect();
    let vectors = scene.samples().unaugmented(&rows).expect("rows");
    let logits = |candidate| {
        let head = head(&fitted, candidate);
        let fitted = head.calibrator.calibrator().and_then(FittedCalibrator::temperature);
        let temperature = fitted.expect("a temperature").value();
        let logits = head.trained.ema.forward(&vectors).expect("logits").logits;
        (logits, temperature)
    };
    let (regression, first) = logits(Candidate::LogisticRegression);
    let (neighbours, second) = logits(Candidate::Neighbours);
    let (average, _) = logits(Candidate::LrNeighbours);
    for ((a, b), found) in regression.iter().zip(&neighbours).zip(average) {
        let expected = 0.5 * (f64::from(*a) / first + f64::from(*b) / second);
        assert!((expected - f64::from(found)).abs() < 1e-4, "{expected} {found}");
    }
}

#[test]
fn neighbours_change_no_bit_of_the_other_heads() {
    let scene = Scene::clouds(500, 24, 5, 0.6);
    let without = fit_all(&scene, &scene.rows(20), &HeadSettings { neighbours: false, ..settings() }, 1);
    let mut with = fit_all(&scene, &scene.rows(20), &settings(), 1);
    let has_neighbours = |candidate| matches!(candidate, Candidate::Neighbours | Candidate::LrNeighbours);
    with.heads.retain(|head| !has_neighbours(head.candidate));
    assert_eq!(bits(&with), bits(&without));
}

#[test]
fn too_many_samples_have_no_graph() {
    assert!(fits(MAX_ROWS, 10) && !fits(MAX_ROWS + 1, 10));
    assert!(!fits(MAX_ROWS, 10_000) && !fits(1, 2));
}
