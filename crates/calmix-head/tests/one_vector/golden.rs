//! Logistic regression against scikit-learn, and EM against NumPy: `golden/one_vector.py` wrote the numbers.

use calmix_core::softmax::softmax_into;
use calmix_head::gaussian_mixture::{GaussianMixture, gaussian_mixture};
use calmix_head::logistic_regression::logistic_regression;
use calmix_head::network::Head;
use calmix_head::samples::TrainingRows;
use serde_json::Value;

use super::scene::{Scene, with_progress};

const CLASSES: usize = 3;
const WIDTH: usize = 5;
const ROWS: usize = 120;
/// Both stop within 1e-6 of a gradient or of f32's rounding; what is left is that of the solvers.
const TOLERANCE: f64 = 1e-4;
/// The golden fit is exact, so this one has to end later than usual.
const SMALL_GAIN: f64 = 1e-10;

fn golden() -> Value {
    serde_json::from_str(include_str!("../golden/one_vector.json")).expect("a golden file")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("numbers").iter().map(|number| number.as_f64().expect("a number")).collect()
}

fn scene(golden: &Value) -> Scene {
    let vectors = numbers(&golden["vectors"]).into_iter().map(|number| number as f32).collect();
    Scene::of(vectors, WIDTH, (0..ROWS).map(|row| (row % CLASSES) as u32).collect(), CLASSES)
}

fn greatest_difference(head: &Head, vectors: &[f32], expected: &[f64]) -> f64 {
    let logits = head.forward(vectors).expect("whole vectors").logits;
    let mut p = vec![0.0; logits.len()];
    for (logits, p) in logits.chunks_exact(CLASSES).zip(p.chunks_exact_mut(CLASSES)) {
        softmax_into(logits, p);
    }
    assert_eq!(p.len(), expected.len());
    p.iter().zip(expected).map(|(&p, expected)| (f64::from(p) - expected).abs()).fold(0.0, f64::max)
}

#[test]
fn logistic_regression_is_that_of_scikit_learn() {
    let golden = golden();
    let scene = scene(&golden);
    let rows = TrainingRows { labelled: (0..60).collect(), unlabelled: Vec::new() };
    let strengths = numbers(&golden["strengths"]);
    let heads = with_progress(|progress| {
        logistic_regression(scene.samples(), &rows, &strengths, SMALL_GAIN, progress)
    });
    let heads = heads.expect("heads");
    let held_out: Vec<usize> = (60..ROWS).collect();
    for ((head, expected), c) in
        heads.iter().zip(golden["regression"].as_array().expect("rows")).zip(strengths)
    {
        let apart = greatest_difference(
            head,
            &scene.samples().unaugmented(&held_out).expect("rows"),
            &numbers(expected),
        );
        assert!(apart < TOLERANCE, "C = {c}: {apart}");
    }
}

#[test]
fn em_is_that_of_numpy() {
    let golden = golden();
    let scene = scene(&golden);
    let rows = TrainingRows { labelled: (0..12).collect(), unlabelled: (0..ROWS).collect() };
    let all: Vec<usize> = (0..ROWS).collect();
    for (name, settings) in [("em", GaussianMixture::PLAIN), ("balanced_em", GaussianMixture::BALANCED)] {
        let head = with_progress(|progress| gaussian_mixture(scene.samples(), &rows, settings, progress));
        let apart = greatest_difference(
            &head.expect("a head"),
            &scene.samples().unaugmented(&all).expect("rows"),
            &numbers(&golden[name]),
        );
        assert!(apart < TOLERANCE, "{name}: {apart}");
    }
}
