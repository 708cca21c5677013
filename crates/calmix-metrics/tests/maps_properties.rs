//! Properties of the calibrators and statistics that hold for any finite input.

use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use calmix_metrics::calibrator::cross_fit::CrossFit;
use calmix_metrics::calibrator::isotonic::Isotonic;
use calmix_metrics::calibrator::temperature::{MAX_TEMPERATURE, MIN_TEMPERATURE, Temperature};
use calmix_metrics::calibrator::vector::VectorScaling;
use calmix_metrics::calibrator::{Calibrator, CalibratorKind};
use calmix_metrics::conformal::{Conformal, Score};
use calmix_metrics::measure::nll_from_logits;
use calmix_metrics::metrics::Resampling;
use calmix_metrics::predictions::LabelledLogits;
use calmix_metrics::stats::{Summary, holm, paired_t_test, student_t};
use proptest::collection::vec;
use proptest::prelude::*;

/// Ordinary logits, ties, and the largest that exist.
fn logit() -> impl Strategy<Value = f32> {
    prop_oneof![
        6 => -20.0_f32..20.0,
        2 => (-2_i8..=2).prop_map(f32::from),
        1 => prop_oneof![Just(f32::MAX), Just(f32::MIN), Just(f32::MIN_POSITIVE), Just(1e30), Just(-0.0)],
    ]
}

/// Rows of 1 to 5 classes with a label each; no rows at all are possible.
fn table() -> impl Strategy<Value = (Vec<f32>, usize, Vec<u32>)> {
    (0_usize..12, 1_usize..=5)
        .prop_flat_map(|(rows, width)| (vec(logit(), rows * width), Just(width), vec(0..width as u32, rows)))
}

/// Finite numbers of every size, often equal to each other.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -3.0..3.0,
        3 => (-2_i8..=2).prop_map(f64::from),
        1 => any::<f64>().prop_filter("finite", |x| x.is_finite()),
    ]
}

fn probability_rows(logits: Matrix) -> Vec<f32> {
    Temperature::IDENTITY.probabilities(logits)
}

proptest! {
    #[test]
    fn temperature_is_never_worse_and_never_out_of_bounds((data, width, labels) in table()) {
        let logits = Matrix::new(&data, labels.len(), width).unwrap();
        let Ok(fitted) = Temperature::fit(logits, &labels) else {
            prop_assert!(labels.is_empty());
            return Ok(());
        };
        prop_assert!((MIN_TEMPERATURE..=MAX_TEMPERATURE).contains(&fitted.value()));
        let nll = |t: Temperature| nll_from_logits(logits, &labels, t.value()).unwrap();
        prop_assert!(nll(fitted) <= nll(Temperature::IDENTITY));
        // No worse than its neighbours and the bounds either, up to the rounding of a sum of NLLs.
        for other in [fitted.value() * 0.99, fitted.value() * 1.01, MIN_TEMPERATURE, MAX_TEMPERATURE] {
            let other = Temperature::new(other.clamp(MIN_TEMPERATURE, MAX_TEMPERATURE)).unwrap();
            prop_assert!(nll(fitted) <= nll(other) * (1.0 + 1e-14) + 1e-14);
        }
        for row in fitted.probabilities(logits).chunks(width) {
            let sum: f32 = row.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-6);
        }
    }

    /// The objective of few labels is never worse than at T = 1, nor than at the likeliest temperature.
    #[test]
    fn a_cautious_temperature_is_the_best_by_its_own_measure((data, width, labels) in table()) {
        let logits = Matrix::new(&data, labels.len(), width).unwrap();
        let Ok(fitted) = Temperature::fit_penalised(logits, &labels) else {
            prop_assert!(labels.is_empty());
            return Ok(());
        };
        prop_assert!((MIN_TEMPERATURE..=MAX_TEMPERATURE).contains(&fitted.value()));
        let objective = |t: Temperature| {
            let nll = nll_from_logits(logits, &labels, t.value()).unwrap() * labels.len() as f64;
            let ln = t.value().ln();
            nll + if ln >= 0.0 { ln } else { -4.0 * ln }
        };
        let likeliest = Temperature::fit(logits, &labels).unwrap();
        for other in [Temperature::IDENTITY, likeliest] {
            let found = objective(fitted);
            let other = objective(other);
            prop_assert!(found <= other * (1.0 + 1e-12) + 1e-12, "{found} {other}");
        }
        // Between doing nothing and the likeliest.
        let low = likeliest.value().min(1.0);
        let high = likeliest.value().max(1.0);
        prop_assert!((low * 0.999_999..=high * 1.000_001).contains(&fitted.value()));
    }

    #[test]
    fn cross_fitting_partitions_and_never_panics(
        (data, width, labels) in table(), folds in 0_usize..8, seed in any::<u64>(), kind in 0_usize..3
    ) {
        let logits = Matrix::new(&data, labels.len(), width).unwrap();
        let fit = |rows: LabelledLogits<'_>| Calibrator::fit(CalibratorKind::ALL[kind], rows.logits, rows.labels, &|| false);
        let fit = CrossFit::fit(fit, LabelledLogits::ungrouped(logits, &labels), folds, Seed(seed));
        prop_assert_eq!(fit.is_ok(), folds >= 2 && folds <= labels.len());
        if let Ok(fit) = fit {
            prop_assert!(fit.logits.iter().all(|z| z.is_finite()) && fit.mean_nll().is_finite());
            let sizes: Vec<usize> = (0..folds as u32)
                .map(|f| fit.fold_of.iter().filter(|&&of| of == f).count())
                .collect();
            prop_assert_eq!(sizes.iter().sum::<usize>(), labels.len());
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn vector_scaling_is_never_worse(
        (data, width, labels) in table(), l2 in prop_oneof![Just(0.0), Just(1.0), 0.0..10.0]
    ) {
        let logits = Matrix::new(&data, labels.len(), width).unwrap();
        let Ok(fit) = VectorScaling::fit(logits, &labels, l2, &|| false) else {
            prop_assert!(labels.is_empty());
            return Ok(());
        };
        let nll = |map: &VectorScaling| map.negative_log_likelihood(logits, &labels).unwrap();
        prop_assert!(nll(&fit.scaling) <= nll(&VectorScaling::identity(width)));
        prop_assert!(fit.scaling.probabilities(logits).unwrap().iter().all(|p| (0.0..=1.0).contains(p)));
    }

    #[test]
    fn isotonic_is_monotone_idempotent_and_keeps_the_mean(
        samples in vec((-3.0..3.0_f64, 0.0..1.0_f64, 0_u8..4), 0..40), coarse in any::<bool>(),
        queries in vec(any_number(), 20)
    ) {
        let scores: Vec<f64> = samples
            .iter()
            .map(|s| if coarse { s.0.round() } else { s.0 })
            .collect();
        let targets: Vec<f64> = samples.iter().map(|s| s.1).collect();
        let weights: Vec<f64> = samples.iter().map(|s| f64::from(s.2)).collect();
        let total: f64 = weights.iter().sum();
        let Ok(map) = Isotonic::fit(&scores, &targets, Some(&weights)) else {
            prop_assert_eq!(total, 0.0);
            return Ok(());
        };
        let mut queries = queries;
        queries.extend(&scores);
        queries.sort_by(f64::total_cmp);
        prop_assert!(queries.iter().map(|&x| map.predict(x)).is_sorted());

        let fitted: Vec<f64> = scores.iter().map(|&x| map.predict(x)).collect();
        let weighted = |y: &[f64]| y.iter().zip(&weights).map(|(y, w)| y * w).sum::<f64>();
        // At most 40 numbers below one, weighted up to three.
        prop_assert!((weighted(&fitted) - weighted(&targets)).abs() < 1e-12);

        let again = Isotonic::fit(&scores, &fitted, Some(&weights)).unwrap();
        for (&x, &y) in scores.iter().zip(&fitted) {
            let kept = weights.iter().zip(&scores).any(|(&w, &s)| w > 0.0 && s == x);
            prop_assert!(!kept || again.predict(x) == y);
        }
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.reverse();
        let pick = |x: &[f64]| order.iter().map(|&i| x[i]).collect::<Vec<f64>>();
        let reversed = Isotonic::fit(&pick(&scores), &pick(&targets), Some(&pick(&weights))).unwrap();
        prop_assert_eq!(reversed, map);
    }

    #[test]
    fn isotonic_survives_any_finite_input(
        samples in vec((any_number(), any_number(), any_number()), 0..12), query in any_number()
    ) {
        let column = |f: fn(&(f64, f64, f64)) -> f64| samples.iter().map(f).collect::<Vec<f64>>();
        let scores = column(|s| s.0);
        let targets = column(|s| s.1);
        let weights = column(|s| s.2.abs());
        for weights in [None, Some(&weights[..])] {
            if let Ok(map) = Isotonic::fit(&scores, &targets, weights) {
                prop_assert!(map.predict(query).is_finite());
            }
        }
    }

    #[test]
    fn top_label_confidence_is_a_probability((data, width, labels) in table()) {
        let logits = Matrix::new(&data, labels.len(), width).unwrap();
        match Isotonic::fit_top_label(logits, &labels) {
            Ok(map) => prop_assert!(logits.iter().all(|row| (0.0..=1.0).contains(&map.confidence(row)))),
            Err(_) => prop_assert!(labels.is_empty()),
        }
    }

    #[test]
    fn conformal_sets_are_nested_in_alpha(
        (data, width, labels) in table(), low in 0.01..0.99_f64, high in 0.01..0.99_f64, seed in any::<u64>()
    ) {
        let p = probability_rows(Matrix::new(&data, labels.len(), width).unwrap());
        let rows = Matrix::new(&p, labels.len(), width).unwrap();
        let (low, high) = (low.min(high), low.max(high));
        for score in [Score::Lac, Score::Aps, Score::RandomisedAps { seed: Seed(seed) }] {
            let wide = Conformal::fit(rows, &labels, score, low).unwrap();
            let narrow = Conformal::fit(rows, &labels, score, high).unwrap();
            for (i, row) in rows.iter().enumerate() {
                let wide = wide.set(row, i as u64);
                let inside = narrow.set(row, i as u64);
                // Sets are the most likely classes, so the narrow one begins the wide one.
                prop_assert!(wide.starts_with(&inside));
                prop_assert!(!narrow.never_empty().set(row, i as u64).is_empty());
            }
        }
    }

    #[test]
    fn holm_keeps_the_order_and_never_falls_below(
        p in vec(prop_oneof![0.0..=1.0, Just(0.0), Just(1.0), Just(0.01)], 0..12)
    ) {
        let adjusted = holm(&p).unwrap();
        prop_assert_eq!(adjusted.len(), p.len());
        for i in 0..p.len() {
            prop_assert!(adjusted[i] >= p[i] && adjusted[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
            }
        }
    }

    #[test]
    fn bootstrap_intervals_are_deterministic_and_ordered(
        x in vec(-5.0..5.0_f64, 0..15), level in 0.05..0.99_f64, seed in any::<u64>()
    ) {
        let resampling = Resampling { replicates: 60, level };
        let first = resampling.interval(x.len(), Seed(seed), |counts| counts.mean(&x));
        prop_assert_eq!(&first, &resampling.interval(x.len(), Seed(seed), |counts| counts.mean(&x)));
        prop_assert_eq!(first.is_ok(), x.len() >= 2);
        if let Ok(interval) = first {
            let low = x.iter().copied().fold(5.0, f64::min);
            let high = x.iter().copied().fold(-5.0, f64::max);
            prop_assert!(interval.low <= interval.high);
            // A mean of fifteen numbers below five may be rounded past the largest of them.
            prop_assert!(interval.low >= low - 1e-13 && interval.high <= high + 1e-13);
        }
    }

    #[test]
    fn summaries_survive_any_finite_numbers(a in vec(any_number(), 0..6), b in vec(any_number(), 0..6)) {
        if let Ok(summary) = Summary::of(&a) {
            prop_assert!(summary.mean.is_finite());
            prop_assert_eq!(summary.deviation.is_some(), a.len() > 1);
            if let Ok(interval) = summary.interval(0.9) {
                prop_assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
            }
        }
        if let Ok(test) = paired_t_test(&a, &b, 0.9) {
            prop_assert!((0.0..=1.0).contains(&test.p_value));
        }
    }

    #[test]
    fn student_quantiles_fall_as_the_tail_grows(
        tail in 1e-300..0.999_f64, degrees in prop_oneof![0.05..5.0_f64, 5.0..2e5, Just(1e300), Just(f64::INFINITY)]
    ) {
        let t = student_t::upper_quantile(tail, degrees).unwrap();
        let further = student_t::upper_quantile(tail * 1.001, degrees).unwrap();
        prop_assert!(further < t, "{} {}", t, further);
    }
}
