//! Simulates the whole path of a classifier of vectors: folds, choice of the head, calibrator, prediction sets, abstention.
//!
//! The classes are Gaussians, so as many new vectors can be drawn as are needed to measure coverage and precision. Each head is
//! evaluated on new vectors and on the unlabelled ones that it was trained on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "../../../calmix-core/tests/tier/tier.rs"]
mod tier;
mod world;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_head::fit::{Candidate, FittedHead};
use calmix_head::model::HeadModel;
use calmix_metrics::held_out::{self, HeldOut, SetRule};
use calmix_recipe::Layers;
use calmix_vectors::vector_classifier::{LabelledVectors, VectorClassifier, recipe};

use world::{DIMENSIONS, Drawn, LabelCounts, World};

const COVERAGE: f64 = 0.9;
const PRECISION: f64 = 0.9;
/// The unlabelled vectors of a draw, and the new ones on which it is evaluated.
const UNLABELLED: usize = 400;
const NEW: usize = 1_000;

/// What a head does on vectors that it was not calibrated on.
#[derive(Debug, Clone, Copy, Default)]
struct Outcome {
    /// The share of new vectors whose set contains the true class, and of its own unlabelled ones.
    new: f64,
    own: f64,
    /// The share of right answers among new vectors; `None` if the head abstains from all.
    precision: Option<f64>,
    error: f64,
}

/// The outcomes of a cell by head; the kept one is `None`.
type Outcomes = BTreeMap<Option<&'static str>, Vec<Outcome>>;

/// Draws a world, trains a classifier and evaluates all of its heads.
fn simulated(counts: LabelCounts, draw: u64, outcomes: &mut Outcomes) {
    let world = World::drawn(counts, draw);
    let labelled = world.labelled(0);
    let pool = world.mixed(UNLABELLED, 1);
    let new = world.mixed(NEW, 2);
    let vectors: Vec<f32> = labelled.vectors.iter().chain(&pool.vectors).copied().collect();
    let rows = labelled.labels.len() + pool.labels.len();
    let mut labels: Vec<Option<u32>> = labelled.labels.iter().map(|&label| Some(label)).collect();
    labels.resize(rows, None);
    let recipe = recipe(Layers::new().recipe("vectors").set(&format!("train.seed={draw}")), 1).unwrap();
    let samples = LabelledVectors {
        vectors: Matrix::new(&vectors, rows, DIMENSIONS).unwrap(),
        views: 1,
        labels: &labels,
        classes: &world.classes,
    };
    let stop = AtomicBool::new(false);
    let classifier = VectorClassifier::fit(samples, &recipe, 1, &stop).unwrap();
    for (n, head) in classifier.fit.heads.iter().enumerate() {
        let outcome = evaluated(&classifier, head, &pool, &new);
        outcomes.entry(Some(name(head.candidate))).or_default().push(outcome);
        if n == classifier.fit.kept {
            outcomes.entry(None).or_default().push(outcome);
        }
    }
}

fn name(candidate: Candidate) -> &'static str {
    match candidate {
        Candidate::Settings => "recipe",
        Candidate::LabelsAlone => "labels alone",
        Candidate::LogisticRegression => "logistic regression",
        Candidate::Em => "EM",
        Candidate::BalancedEm => "balanced EM",
        Candidate::LrEm => "average",
    }
}

fn evaluated(classifier: &VectorClassifier, head: &FittedHead, pool: &Drawn, new: &Drawn) -> Outcome {
    let Some(fitted) = head.calibrator.map() else { return Outcome { new: 1.0, own: 1.0, ..Outcome::default() } };
    let model =
        HeadModel::new(classifier.model.projection().clone(), head.trained.average.clone()).unwrap();
    let held_out = held_out::cross_fitted(&head.predictions, fitted, &head.unseen).unwrap();
    let sets = held_out.sets(SetRule::Lac, COVERAGE).unwrap();
    let coverage = |drawn: &Drawn| {
        let logits = model.logits(&drawn.vectors).unwrap();
        let classes = logits.len() / drawn.labels.len();
        let probabilities =
            fitted.calibrator.probabilities(Matrix::new(&logits, drawn.labels.len(), classes).unwrap()).unwrap();
        let rows = probabilities.chunks(classes).zip(&drawn.labels);
        let covered = rows.filter(|(row, label)| sets.set(row, 0).contains(label)).count();
        covered as f64 / drawn.labels.len() as f64
    };
    let logits = model.logits(&new.vectors).unwrap();
    let classes = logits.len() / new.labels.len();
    let threshold = held_out.answer_threshold(PRECISION).unwrap().map(|found| found.threshold);
    let mut answered = 0.0;
    let mut right_answers = 0.0;
    let mut wrong = 0.0;
    for (row, &label) in logits.chunks(classes).zip(&new.labels) {
        let is_right = calmix_core::softmax::argmax(row) == label as usize;
        wrong += f64::from(u8::from(!is_right));
        if threshold.is_some_and(|threshold| fitted.calibrator.answer_score(row).unwrap() >= threshold) {
            answered += 1.0;
            right_answers += f64::from(u8::from(is_right));
        }
    }
    let precision = (answered > 0.0).then(|| right_answers / answered);
    Outcome { new: coverage(new), own: coverage(pool), precision, error: wrong / new.labels.len() as f64 }
}

/// Mean and standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

/// Simulates a cell, prints it, and returns what breaks the guarantees beyond what chance explains: two standard errors.
fn faults(counts: LabelCounts) -> Vec<String> {
    let draws = u64::from(tier::number("CALMIX_DRAWS", 50, 1_000));
    let mut outcomes = Outcomes::new();
    for draw in 0..draws {
        simulated(counts, draw, &mut outcomes);
    }
    let mut faults = Vec::new();
    for (head, outcomes) in outcomes {
        let head = head.unwrap_or("kept");
        let column = |of: fn(&Outcome) -> f64| -> Vec<f64> { outcomes.iter().map(of).collect() };
        let n = outcomes.len() as f64;
        let promised = outcomes.iter().filter(|outcome| outcome.precision.is_some()).count();
        let broken = outcomes.iter().filter(|outcome| outcome.precision.is_some_and(|right| right < PRECISION));
        let broken = broken.count() as f64 / n;
        let most = HeldOut::DELTA + 2.0 * (HeldOut::DELTA * (1.0 - HeldOut::DELTA) / n).sqrt();
        let (error, _) = mean(&column(|outcome| outcome.error));
        let mut shown = format!("{counts:?}, {head} ({n}): error {:.1}%", 100.0 * error);
        for (kind, values) in [("new", column(|outcome| outcome.new)), ("own", column(|outcome| outcome.own))] {
            let (coverage, standard_error) = mean(&values);
            shown += &format!(", {kind} {:.1} ± {:.1}%", 100.0 * coverage, 100.0 * standard_error);
            if coverage < COVERAGE - 0.01 - 2.0 * standard_error {
                faults.push(format!("{counts:?}, {head}: sets cover {:.1}% of {kind} vectors", 100.0 * coverage));
            }
        }
        println!("{shown}, {promised} promise a precision, false {:.1}%", 100.0 * broken);
        if broken > most {
            faults.push(format!("{counts:?}, {head}: false precision in {:.1}% of draws", 100.0 * broken));
        }
    }
    faults
}

fn assert_kept(counts: LabelCounts) {
    let faults = faults(counts);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn two_labels_per_class_keep_the_guarantees() {
    assert_kept(LabelCounts::Even(2));
}

#[test]
fn four_labels_per_class_keep_the_guarantees() {
    assert_kept(LabelCounts::Even(4));
}

#[test]
fn ten_labels_per_class_keep_the_guarantees() {
    assert_kept(LabelCounts::Even(10));
}

#[test]
fn many_labels_per_class_keep_the_guarantees() {
    assert_kept(LabelCounts::Even(25));
}

#[test]
fn classes_with_one_label_count_against_the_guarantees() {
    assert_kept(LabelCounts::HalfSingle(8));
}
