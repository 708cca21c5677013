//! Parity of the method with a plain f64 transcription of its definitions (`tests/golden/method.py`).
// Not every function here is a `#[test]`, but all of it is.

use calmix_core::margin::{Averaging, LabelledMargins, MarginStore, margin};
use calmix_core::matrix::Matrix;
use calmix_core::mixup::Row;
use calmix_core::mixup::pair::Dissimilar;
use calmix_core::observation::{Observation, Rows};
use calmix_core::planner::Planner;
use calmix_core::preset::paper;
use calmix_core::pseudo::{
    AlignmentTarget, Base, BaseState, FixMatch, FlexMatch, FreeMatch, FreeState, Mapping, MarginalInit,
    SoftMatch, SoftState, Statistics,
};
use calmix_core::rng::{Domain, Seed, Stream};
use calmix_core::schedule::{RunStep, Start};
use serde::Deserialize;
use serde::de::DeserializeOwned;

const SEED: u64 = 2026;

fn cases<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let cases: Vec<T> = file.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() >= 1000, "only {} cases", cases.len());
    cases
}

fn inputs(family: u64, case: u64) -> Stream {
    Seed(SEED).stream(Domain::Bootstrap, family, case)
}

fn draw(s: &mut Stream, from: usize, count: u64) -> usize {
    from + s.below(count) as usize
}

fn matrix(s: &mut Stream, rows: usize, width: usize, scale: f64) -> Vec<f32> {
    (0..rows * width).map(|_| ((s.uniform() - 0.5) * 2.0 * scale) as f32).collect()
}

/// Values of size 10 kept in f32 over up to 15 visits: each visit rounds once, by half of 2⁻²³·10 at most.
const F32_AVERAGE: f64 = 15.0 * 10.0 * 6e-8;

/// A softmax in f32: relative 2⁻²² or so a probability, and functions of it with slopes up to about ten.
const F32_SOFTMAX: f64 = 5e-6;

#[derive(Deserialize)]
struct MarginCase {
    case: u64,
    apm: Vec<f64>,
    aum: f64,
}

#[test]
fn average_margins() {
    for expected in cases::<MarginCase>(include_str!("golden/margins.jsonl")) {
        let s = &mut inputs(1, expected.case);
        let (classes, visits) = (draw(s, 1, 6), draw(s, 1, 15));
        let (exponential, parameter) = (s.below(2) == 1, 0.5 + 0.49 * s.uniform());
        let label = draw(s, 0, classes as u64);
        let rule = if exponential {
            Averaging::Exponential { rho: parameter }
        } else {
            Averaging::Cumulative { delta: parameter }
        };
        let (mut apm, mut aum) = (MarginStore::new(rule, 1, classes), LabelledMargins::new(rule, &[7]));
        let mut mean = LabelledMargins::new(Averaging::default(), &[7]);
        for z in matrix(s, visits, classes, 10.0).chunks_exact(classes) {
            apm.visit(0, z).unwrap();
            aum.visit(7, margin(z, label)).unwrap();
            mean.visit(7, margin(z, label)).unwrap();
        }
        for (class, e) in expected.apm.iter().enumerate() {
            let found = f64::from(apm.apm(0, class as u32).unwrap());
            assert!((found - e).abs() < F32_AVERAGE, "case {}: {found} is not {e}", expected.case);
        }
        // Averages of exact differences in f64; the file has twelve digits.
        assert!((mean.aum(7).unwrap() - expected.aum).abs() < 1e-10, "case {}", expected.case);
        let other = if exponential { expected.apm[label] } else { expected.aum };
        assert!((aum.aum(7).unwrap() - other).abs() < 1e-10, "case {}: one rule for both", expected.case);
    }
}

#[derive(Deserialize)]
struct FlexCase {
    case: u64,
    masks: String,
    counts: Vec<u64>,
    thresholds: Vec<f64>,
}

#[test]
fn flexmatch_masks_counts_and_thresholds() {
    let mappings = [Mapping::Convex, Mapping::Linear, Mapping::LowLimit, Mapping::Concave];
    for expected in cases::<FlexCase>(include_str!("golden/flexmatch.jsonl")) {
        let s = &mut inputs(2, expected.case);
        let (classes, samples) = (draw(s, 1, 5), draw(s, 4, 12));
        let (steps, batch) = (draw(s, 1, 8), draw(s, 1, 6));
        let mapping = mappings[draw(s, 0, 4)];
        let (warmup, threshold) = (s.below(2) == 1, f64::from((0.5 + 0.45 * s.uniform()) as f32));
        let rule = FlexMatch { threshold, mapping, warmup };
        let method = paper(Base::FlexMatch(rule)).without_mixup();
        let mut planner = Planner::new(method, classes, &[], samples, Seed(0));
        let mut masks = String::new();
        for _ in 0..steps {
            let ids: Vec<u64> = (0..batch).map(|_| s.below(samples as u64)).collect();
            let z = matrix(s, batch, classes, 6.0);
            let z = Matrix::new(&z, batch, classes).unwrap();
            let none = Matrix::new(&[], batch, 0).unwrap();
            let rows = |ids, logits, features| Rows { ids, logits, features };
            let labelled = rows(&[], z.range(0..0), none.range(0..0));
            let observation = Observation { labelled, labels: &[], unlabelled: rows(&ids, z, none) };
            let planned = planner.plan(&observation, &ids, RunStep { step: 0, steps: 10 }).unwrap();
            let pseudo = planner.commit(planned).pseudo;
            masks.extend(pseudo.weights.iter().map(|&w| if w == 1.0 { '1' } else { '0' }));
        }
        assert_eq!(masks, expected.masks, "case {}", expected.case);
        let BaseState::FlexMatch(state) = planner.state.base else { panic!("another method's state") };
        assert_eq!(state.selected, expected.counts, "case {}", expected.case);
        for (found, e) in rule.thresholds(&state).iter().zip(&expected.thresholds) {
            assert!((found - e).abs() < 1e-11, "case {}: {found} is not {e}", expected.case);
        }
    }
}

#[derive(Deserialize)]
struct SoftCase {
    case: u64,
    mean: f64,
    var: f64,
    weights: Vec<f64>,
}

#[test]
fn softmatch_moments_and_weights() {
    for expected in cases::<SoftCase>(include_str!("golden/softmatch.jsonl")) {
        let s = &mut inputs(3, expected.case);
        let (classes, steps) = (draw(s, 1, 6), draw(s, 1, 6));
        let [aligned, labelled, uniform] = [0; 3].map(|_| s.below(2) == 1);
        let (momentum, n_sigma) = (0.5 + 0.499 * s.uniform(), 1.0 + 2.0 * s.uniform());
        let rule = SoftMatch {
            n_sigma,
            momentum,
            statistics: if aligned { Statistics::Aligned } else { Statistics::Raw },
            target: if labelled { AlignmentTarget::Labelled } else { AlignmentTarget::Uniform },
            marginal_init: if uniform { MarginalInit::Uniform } else { MarginalInit::FirstBatch },
        };
        let mut state = SoftState::new(classes);
        let mut weights = Vec::new();
        for _ in 0..steps {
            let (rows, labelled_rows) = (draw(s, 1, 7), draw(s, 1, 4));
            let (zu, zx) = (matrix(s, rows, classes, 5.0), matrix(s, labelled_rows, classes, 5.0));
            let (zu, zx) =
                (Matrix::new(&zu, rows, classes).unwrap(), Matrix::new(&zx, labelled_rows, classes).unwrap());
            let sums = Base::SoftMatch(rule).sums(zx, zu);
            weights = rule.pseudo_label(zu, &sums, &mut state).weights;
        }
        let close = |a: f64, b: f64| (a - b).abs() < F32_SOFTMAX;
        assert!(close(state.mean, expected.mean), "case {}: mean {}", expected.case, state.mean);
        assert!(close(state.variance, expected.var), "case {}: variance {}", expected.case, state.variance);
        assert_eq!(weights.len(), expected.weights.len());
        for (&found, &e) in weights.iter().zip(&expected.weights) {
            assert!(close(f64::from(found), e), "case {}: weight {found} is not {e}", expected.case);
        }
    }
}

#[derive(Deserialize)]
struct FreeCase {
    case: u64,
    threshold: f64,
    marginal: Vec<f64>,
    histogram: Vec<f64>,
    mask: String,
}

/// Against semilearn's own hook.
#[test]
fn freematch_thresholds_and_masks() {
    for expected in cases::<FreeCase>(include_str!("golden/freematch.jsonl")) {
        let s = &mut inputs(5, expected.case);
        let (classes, steps) = (draw(s, 1, 6), draw(s, 1, 6));
        let (momentum, clip) = (0.5 + 0.499 * s.uniform(), s.below(2) == 1);
        let rule = FreeMatch { momentum, clip, ..FreeMatch::default() };
        let (mut state, mut mask) = (FreeState::new(classes), String::new());
        for _ in 0..steps {
            let rows = draw(s, 1, 8);
            let z = matrix(s, rows, classes, 5.0);
            let (z, none) = (Matrix::new(&z, rows, classes).unwrap(), Matrix::new(&[], 0, classes).unwrap());
            let pseudo = rule.pseudo_label(z, &Base::FreeMatch(rule).sums(none, z), &mut state);
            mask = pseudo.weights.iter().map(|&w| if w == 1.0 { '1' } else { '0' }).collect();
        }
        assert_eq!(mask, expected.mask, "case {}", expected.case);
        let found = [&[state.threshold][..], &state.marginal, &state.histogram].concat();
        let expected_state = [&[expected.threshold][..], &expected.marginal, &expected.histogram].concat();
        assert_eq!(found.len(), expected_state.len());
        for (found, e) in found.iter().zip(expected_state) {
            assert!((found - e).abs() < F32_SOFTMAX, "case {}: {found} is not {e}", expected.case);
        }
    }
}

#[derive(Deserialize)]
struct PlanCase {
    case: u64,
    pairs: Vec<(usize, usize)>,
    lambdas: Vec<f64>,
}

#[test]
fn whole_plans() {
    for expected in cases::<PlanCase>(include_str!("golden/plans.jsonl")) {
        let s = &mut inputs(4, expected.case);
        let (classes, labelled, unlabelled) = (draw(s, 2, 4), draw(s, 1, 8), draw(s, 1, 20));
        let (width, samples, steps) = (draw(s, 2, 5), draw(s, 6, 30), s.below(4) + 1);
        let (by_fraction, share, count) = (s.below(2) == 1, 0.3 * s.uniform(), draw(s, 1, 6));
        let mut method = paper(Base::FixMatch(FixMatch::default()));
        let mixup = &mut method.mixup;
        mixup.start = Start::at(0);
        if let calmix_core::mixup::Pairing::CalibrateMix(guidance) = &mut mixup.pairing {
            guidance.dissimilar =
                if by_fraction { Dissimilar::Fraction(share) } else { Dissimilar::Count(count as u32) };
        }
        let all: Vec<u64> = (0..samples as u64).collect();
        let seed = Seed(SEED + expected.case);
        let mut planner = Planner::new(method, classes, &all, samples, seed);
        let mut last = None;
        for step in 0..steps {
            let ids = |s: &mut Stream, count: usize, below: usize| -> Vec<u64> {
                (0..count).map(|_| s.below(below as u64)).collect()
            };
            let x_ids = ids(s, labelled, samples);
            let y: Vec<u32> = ids(s, labelled, classes).into_iter().map(|y| y as u32).collect();
            let u_ids = ids(s, unlabelled, samples);
            let (zx, zu) = (matrix(s, labelled, classes, 5.0), matrix(s, unlabelled, classes, 5.0));
            let (fx, fu) = (matrix(s, labelled, width, 1.0), matrix(s, unlabelled, width, 1.0));
            let rows = |ids, z, f, n| Rows {
                ids,
                logits: Matrix::new(z, n, classes).unwrap(),
                features: Matrix::new(f, n, width).unwrap(),
            };
            let observation = Observation {
                labelled: rows(&x_ids, &zx, &fx, labelled),
                labels: &y,
                unlabelled: rows(&u_ids, &zu, &fu, unlabelled),
            };
            let planned = planner.plan(&observation, &u_ids, RunStep { step, steps: 1000 }).unwrap();
            last = Some(planner.commit(planned));
        }
        let mixes = last.unwrap().mixes;
        let pairs: Vec<(usize, usize)> = mixes
            .iter()
            .map(|mix| match (mix.a, mix.b) {
                (Row::Labelled(i), Row::Unlabelled(j)) => (i, j),
                other => panic!("{other:?} in a plan of the paper"),
            })
            .collect();
        assert_eq!(pairs, expected.pairs, "case {}", expected.case);
        let mut lambdas: Vec<f32> = mixes.iter().map(|mix| mix.lambda).collect();
        lambdas.sort_by(f32::total_cmp);
        lambdas.dedup();
        assert_eq!(lambdas.len(), expected.lambdas.len(), "case {}", expected.case);
        for (&found, e) in lambdas.iter().zip(&expected.lambdas) {
            assert!((f64::from(found) - e).abs() < 1e-6, "case {}: λ {found} is not {e}", expected.case);
        }
    }
}
