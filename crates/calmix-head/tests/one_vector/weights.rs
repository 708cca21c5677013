//! Weights of labels: as many copies of a row, in training and nowhere else.

use calmix_head::fit;
use calmix_head::gaussian_mixture::{GaussianMixture, gaussian_mixture};
use calmix_head::logistic_regression::{STRENGTHS, logistic_regression};
use calmix_head::network::Head;
use calmix_head::samples::{HeadSamples, TrainingRows};
use calmix_head::settings::{Candidates, HeadSettings};

use super::fit_all;
use super::scene::{Scene, settings, with_progress};

const LABELS: usize = 20;

/// Weights of 1, 2 and 3 for the labels, and the rows to copy instead.
fn weights(samples: usize) -> (Vec<f64>, Vec<usize>) {
    let mut weights = vec![1.0; samples];
    let mut copied = Vec::new();
    for (row, weight) in weights.iter_mut().enumerate().take(LABELS) {
        *weight += (row % 3) as f64;
        copied.extend(vec![row; row % 3]);
    }
    (weights, copied)
}

fn apart(first: &Head, second: &Head) -> f32 {
    let pairs = first.numbers().iter().zip(second.numbers());
    let largest = first.numbers().iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / largest
}

#[test]
fn weight_equals_copies_of_a_row() {
    let scene = Scene::clouds(300, 16, 4, 0.5);
    let (weights, copied) = weights(300);
    let copies = scene.with_copies(&copied);
    let rows = scene.rows(LABELS);
    let mut labelled = rows.labelled.clone();
    labelled.extend(300..300 + copied.len());
    let rows_of_copies = TrainingRows { labelled, unlabelled: rows.unlabelled.clone() };
    let weighted = HeadSamples { weights: &weights, ..scene.samples() };
    with_progress(|progress| {
        let fit = |samples, rows| logistic_regression(samples, rows, &STRENGTHS, 1e-9, progress).unwrap();
        let plain = fit(scene.samples(), &rows);
        let of_weights = fit(weighted, &rows);
        let of_copies = fit(copies.samples(), &rows_of_copies);
        for ((weights, copies), plain) in of_weights.iter().zip(&of_copies).zip(&plain) {
            // Both end at the same minimum, as near as its flatness allows; without weights it is elsewhere.
            assert!(apart(copies, weights) < 0.01, "{}", apart(copies, weights));
            assert!(apart(copies, plain) > 0.03, "{}", apart(copies, plain));
        }
        for settings in [GaussianMixture::PLAIN, GaussianMixture::BALANCED] {
            let fit = |samples, rows| gaussian_mixture(samples, rows, settings, progress).unwrap();
            let of_copies = fit(copies.samples(), &rows_of_copies);
            let difference = apart(&of_copies, &fit(weighted, &rows));
            // Sums of f32 products in another order.
            assert!(difference < 1e-4, "{difference}");
            let plain = apart(&of_copies, &fit(scene.samples(), &rows));
            assert!(plain > 0.01, "{plain}");
        }
    });
}

#[test]
fn weights_of_one_change_no_nll() {
    let scene = Scene::clouds(300, 16, 4, 0.5);
    let rows = scene.rows(LABELS);
    let ones = vec![1.0; 300];
    let samples = HeadSamples { weights: &ones, ..scene.samples() };
    let weighted = with_progress(|progress| fit(samples, &rows, None, &settings(), 1, progress)).unwrap();
    let plain = fit_all(&scene, &rows, &settings(), 1);
    let nll = |fitted: &fit::HeadFit| -> Vec<f64> {
        fitted.heads.iter().map(|head| head.mean_nll().unwrap()).collect()
    };
    for (a, b) in nll(&weighted).iter().zip(nll(&plain)) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
    assert_eq!(weighted.selected, plain.selected);
}

#[test]
fn wrong_weights_are_refused() {
    let scene = Scene::clouds(60, 8, 3, 0.5);
    let rows = scene.rows(LABELS);
    let refused = |weights: &[f64], settings: &HeadSettings| {
        let samples = HeadSamples { weights, ..scene.samples() };
        with_progress(|progress| fit(samples, &rows, None, settings, 1, progress)).unwrap_err().to_string()
    };
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e10] {
        let mut weights = vec![1.0; 60];
        weights[7] = wrong;
        let error = refused(&weights, &settings());
        assert!(error.contains("row 7: the weight is"), "{error}");
    }
    assert!(refused(&[1.0; 59], &settings()).contains("59 weights"));
    let method = HeadSettings { candidates: Candidates::Method, ..settings() };
    assert!(refused(&[1.0; 60], &method).contains("one vector per sample"));
}
