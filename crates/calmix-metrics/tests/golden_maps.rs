//! The calibrators and statistics against scipy, scikit-learn, statsmodels and NumPy.
//!
//! The expected values are written by `golden/maps.py`; inputs are drawn here from the same streams.

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed, Stream};
use calmix_core::softmax::argmax;
use calmix_metrics::calibrator::isotonic::Isotonic;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::calibrator::vector::VectorScaling;
use calmix_metrics::conformal::{Conformal, Score};
use calmix_metrics::measure::nll_from_logits;
use calmix_metrics::stats::{Summary, holm, student_t};

/// Calls `check` with the stream and the numbers of every case; returns how many there were.
fn each_case(text: &str, seed: u64, mut check: impl FnMut(u64, Stream, &[f64])) -> usize {
    let lines = text.lines().skip(2).enumerate();
    lines
        .map(|(case, line)| {
            let numbers: Vec<f64> = line.split(',').map(|x| x.parse().unwrap()).collect();
            let case = case as u64;
            check(case, Seed(seed).stream(Domain::Bootstrap, 0, case), &numbers);
        })
        .count()
}

fn choice<T: Copy>(stream: &mut Stream, options: &[T]) -> T {
    options[(stream.uniform() * options.len() as f64) as usize]
}

/// Passes over draws whose result the golden line repeats as a parameter.
fn skip(stream: &mut Stream, draws: usize) {
    for _ in 0..draws {
        stream.uniform();
    }
}

fn logits_and_labels(stream: &mut Stream, shape: &[f64]) -> (Vec<f32>, Vec<u32>) {
    let n = shape[0] as usize;
    let classes = shape[1] as usize;
    let logits: Vec<f32> = (0..n * classes).map(|_| ((stream.uniform() - 0.5) * shape[2]) as f32).collect();
    let label = |row: &[f32]| {
        let right = stream.uniform() < shape[3];
        let other = stream.uniform() * classes as f64;
        if right { argmax(row) as u32 } else { other as u32 }
    };
    let labels = logits.chunks(classes).map(label).collect();
    (logits, labels)
}

#[test]
fn temperature_is_scipys_optimum() {
    let mut inside = 0;
    let cases = each_case(include_str!("golden/temperature.csv"), 1, |case, mut stream, line| {
        skip(&mut stream, 4);
        let (logits, labels) = logits_and_labels(&mut stream, line);
        let logits = Matrix::new(&logits, line[0] as usize, line[1] as usize).unwrap();
        let nll = line[4];
        let best = line[5];
        let curvature = line[6];
        let fitted = Temperature::fit(logits, &labels).unwrap();
        let found = nll_from_logits(logits, &labels, fitted.value()).unwrap();
        // Every term is rounded a few times, relative to itself, and so is their mean.
        assert!((found - nll).abs() <= 1e-14 * nll.max(1.0), "case {case}: NLL {found} {nll}");

        // Both zeros of the slope are as good as its rounding: terms of up to the scale, weighted by
        // exponentials of up to β·scale; divided by the curvature, that is an error of β.
        let beta = 1.0 / fitted.value();
        let expected = 1.0 / best;
        let noise = 4.0 * f64::EPSILON * line[2] * (2.0 + beta * line[2]);
        let tolerance = 4.0 * f64::EPSILON * beta + noise / curvature;
        let same = (beta - expected).abs() <= tolerance;
        // Where even that is wider than the range, or nothing can be gained, T = 1 is kept.
        let gain = nll_from_logits(logits, &labels, 1.0).unwrap() - nll;
        let kept = fitted == Temperature::IDENTITY && gain <= 1e-14 * nll.max(1.0);
        assert!(same || kept, "case {case}: T {} {best}", fitted.value());
        inside += usize::from(same && !fitted.is_at_bound() && tolerance < 1e-10 * beta);
    });
    assert_eq!(cases, 1500);
    assert!(inside > 300, "{inside} optima inside the bounds are known to ten digits");
}

#[test]
fn vector_scaling_is_scipys_optimum() {
    let cases = each_case(include_str!("golden/vector.csv"), 2, |case, mut stream, line| {
        skip(&mut stream, 5);
        let (logits, labels) = logits_and_labels(&mut stream, line);
        let logits = Matrix::new(&logits, line[0] as usize, line[1] as usize).unwrap();
        let l2 = line[4];
        let expected = line[5];
        let fit = VectorScaling::fit(logits, &labels, l2, &|| false).unwrap();
        assert!(fit.converged, "case {case}: {} iterations", fit.iterations);
        let moved: f64 = fit.scaling.scale().iter().map(|w| (w - 1.0) * (w - 1.0)).sum();
        let moved = moved + fit.scaling.bias().iter().map(|b| b * b).sum::<f64>();
        let nll = fit.scaling.negative_log_likelihood(logits, &labels).unwrap();
        let objective = nll + l2 / (2.0 * line[0]) * moved;
        // A gradient of 1e-9 in 12 scaled variables of curvature above 1e-5 leaves 12·1e-18/2e-5 < 1e-12.
        assert!(
            (objective - expected).abs() <= 1e-12 * expected.max(1.0),
            "case {case}: {objective} {expected}"
        );
    });
    assert_eq!(cases, 300);
}

#[test]
fn isotonic_regression_is_scikit_learns() {
    let cases = each_case(include_str!("golden/isotonic.csv"), 3, |case, mut stream, line| {
        skip(&mut stream, 3);
        let n = line[0] as usize;
        let steps = line[1];
        let x: Vec<f64> = (0..n).map(|_| (stream.uniform() * steps).floor() / steps).collect();
        let y: Vec<f64> = x
            .iter()
            .map(|&t| {
                if stream.uniform() < 0.5 {
                    stream.uniform() * 0.75 + 0.25 * t
                } else {
                    f64::from(u8::from(stream.uniform() < t))
                }
            })
            .collect();
        let mut w = vec![1.0; n];
        if line[2] == 1.0 {
            w.fill_with(|| (stream.uniform() * 4.0).floor() / 2.0);
        }
        if w.iter().sum::<f64>() == 0.0 {
            w[0] = 1.0;
        }
        let map = Isotonic::fit(&x, &y, Some(&w)).unwrap();
        assert_eq!(map.knots().len(), line[3] as usize, "case {case}");
        let mut queries: Vec<f64> = (0..5).map(|_| stream.uniform() * 1.5 - 0.25).collect();
        queries.push(x[0]);
        for (query, expected) in queries.iter().zip(&line[4..]) {
            let found = map.predict(*query);
            // Means of up to 80 numbers below one, each moved by at most a rounding per merge.
            assert!((found - expected).abs() <= 1e-14, "case {case}: {found} {expected}");
        }
    });
    assert_eq!(cases, 1200);
}

#[test]
fn student_quantiles_and_intervals_are_scipys() {
    let cases = each_case(include_str!("golden/student_t.csv"), 4, |case, mut stream, line| {
        let degrees = if case % 2 == 1 {
            choice(&mut stream, &[1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 29.0, 99.0, 1000.0])
        } else {
            let u = stream.uniform();
            u * u * u * u * 1e6 + 0.25
        };
        let mut tail = stream.uniform();
        for _ in 0..choice(&mut stream, &[0, 1, 2]) {
            tail = tail * tail * tail;
        }
        let numbers: Vec<f64> = (0..3 + case % 4).map(|_| stream.uniform() * 10.0).collect();
        let level = choice(&mut stream, &[0.5, 0.9, 0.95, 0.99]);
        let quantile = student_t::upper_quantile(tail, degrees).unwrap();
        // The continued fraction near 1 magnifies ε by up to 10⁵ degrees of freedom.
        let error = (quantile / line[0] - 1.0).abs();
        assert!(error <= 1e-11, "case {case}: {quantile} {} at {tail} of {degrees}", line[0]);
        let interval = Summary::of(&numbers).unwrap().interval(level).unwrap();
        for (found, expected) in [(interval.low, line[1]), (interval.high, line[2])] {
            // The interval are sums of numbers up to ten and of up to ten deviations of at most seven.
            assert!((found - expected).abs() <= 1e-12, "case {case}: {found} {expected}");
        }
        assert_eq!(interval.n, numbers.len());
    });
    assert_eq!(cases, 1200);
}

#[test]
fn holm_is_statsmodels() {
    let cases = each_case(include_str!("golden/holm.csv"), 5, |case, mut stream, line| {
        skip(&mut stream, 3);
        let m = line[0] as usize;
        let power = line[1];
        let steps = line[2];
        let p_values: Vec<f64> = (0..m)
            .map(|_| {
                let u = (stream.uniform() * (steps + 1.0)).floor() / steps;
                if power == 1.0 { u } else { u * u * u }
            })
            .collect();
        // The same products in both: not a bit may differ.
        assert_eq!(holm(&p_values).unwrap(), line[3..], "case {case}");
    });
    assert_eq!(cases, 1200);
}

fn probabilities(stream: &mut Stream, classes: usize, steps: f64) -> Vec<f32> {
    let weights: Vec<f64> = (0..classes)
        .map(|_| {
            let u = ((stream.uniform() * steps).floor() + 0.5) / steps;
            u * u * u
        })
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| (w / sum) as f32).collect()
}

#[test]
fn conformal_sets_are_those_of_the_transcription() {
    let mut telling = 0;
    let cases = each_case(include_str!("golden/conformal.csv"), 6, |case, mut stream, line| {
        skip(&mut stream, 4);
        let n = line[0] as usize;
        let classes = line[1] as usize;
        let steps = line[2];
        let alpha = line[3];
        let rows: Vec<f32> = (0..n).flat_map(|_| probabilities(&mut stream, classes, steps)).collect();
        let labels: Vec<u32> = (0..n).map(|_| (stream.uniform() * classes as f64) as u32).collect();
        let new: Vec<Vec<f32>> = (0..3).map(|_| probabilities(&mut stream, classes, steps)).collect();
        let rows = Matrix::new(&rows, n, classes).unwrap();
        let rules = [Score::Lac, Score::Aps, Score::RandomisedAps { seed: Seed(case) }];
        for (score, expected) in rules.into_iter().zip(line[4..].chunks(3)) {
            let map = Conformal::fit(rows, &labels, score, alpha).unwrap();
            for (i, (p, &expected)) in new.iter().zip(expected).enumerate() {
                let set = map.set(p, i as u64);
                let mask = set.iter().map(|class| 1_u32 << class).sum::<u32>();
                assert_eq!(f64::from(mask), expected, "case {case}: {score:?} {set:?}");
                telling += usize::from(set.len() < classes);
            }
        }
    });
    assert_eq!(cases, 1200);
    assert!(telling > 3_000, "{telling} sets leave a class out");
}
