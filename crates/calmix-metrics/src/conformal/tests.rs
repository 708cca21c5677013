use calmix_core::matrix::Matrix;

use super::*;

#[test]
fn the_rank_is_the_finite_sample_quantile() {
    assert_eq!(rank(9, 0.1), 9);
    assert_eq!(rank(19, 0.05), 19);
    assert_eq!(rank(99, 0.29), 71);
    assert_eq!(rank(8, 0.1), 9); // more than n: no threshold
    assert_eq!(rank(0, 0.5), 1);
    assert_eq!(rank(3, 0.999), 1);
}

#[test]
fn min_labels_are_the_fewest_with_a_threshold() {
    for coverage in [0.5, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999] {
        let alpha = 1.0 - coverage;
        let needed = Conformal::min_labels(alpha);
        let threshold = |n: usize| Conformal::from_scores(vec![0.5; n], Score::Lac, alpha).unwrap().threshold;
        assert_eq!((threshold(needed - 1), threshold(needed)), (None, Some(0.5)), "{coverage}");
    }
    assert_eq!(Conformal::min_labels(1.0 - 0.9), 9);
}

#[test]
fn too_few_samples_give_all_classes() {
    let p = [0.75_f32, 0.25];
    let rule = Conformal::fit(Matrix::new(&p, 1, 2).unwrap(), &[0], Score::Lac, 0.1).unwrap();
    assert_eq!((rule.threshold, rule.n), (None, 1));
    assert_eq!(rule.set(&[0.25, 0.75], 0), [1, 0]);
    let none = Conformal::fit(Matrix::new(&[], 0, 2).unwrap(), &[], Score::Aps, 0.1).unwrap();
    assert_eq!(none.set(&p, 0).len(), 2);
}

#[test]
fn set_may_be_empty() {
    let p = [1.0_f32, 0.0];
    for score in [Score::Lac, Score::Aps] {
        let sure = Conformal { score, alpha: 0.5, threshold: Some(0.25), never_empty: false, n: 1 };
        let unsure: &[f32] = if score == Score::Lac { &[0.5, 0.5] } else { &p };
        assert!(sure.set(unsure, 0).is_empty());
        assert_eq!(sure.never_empty().set(unsure, 0), [0]);
        assert!(sure.never_empty().set::<f32>(&[], 0).is_empty());
    }
}

#[test]
fn aps_counts_the_classes_before() {
    let scored = Score::Aps.of_classes(&[0.25, 0.5, 0.25], PREDICTION, 0);
    assert_eq!(scored, [(1, 0.5), (0, 0.75), (2, 1.0)]);
    let seed = Seed(5);
    let u = seed.stream(Domain::Conformal, PREDICTION, 7).uniform();
    let scored = Score::RandomisedAps { seed }.of_classes(&[0.25, 0.5, 0.25], PREDICTION, 7);
    assert_eq!(scored, [(1, 0.5 * u), (0, 0.5 + 0.25 * u), (2, 0.75 + 0.25 * u)]);
}

#[test]
fn score_of_a_label_is_that_of_its_class() {
    let rows = [[0.25, 0.5, 0.25], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0]];
    for score in [Score::Lac, Score::Aps, Score::RandomisedAps { seed: Seed(5) }] {
        for (sample, row) in rows.iter().enumerate() {
            for (class, expected) in score.of_classes(row, CALIBRATION, sample as u64) {
                assert_eq!(score.of_label(row, class, sample as u64), Some(expected), "{score:?} {row:?}");
            }
            assert_eq!(score.of_label(row, 3, 0), None);
        }
    }
}

/// The share of new samples whose set holds the label, over many calibration sets of `n`.
fn coverage(score: Score, alpha: f64, n: usize) -> f64 {
    const CLASSES: usize = 5;
    let rounds = 400;
    let new_samples = 50;
    let mut covered = 0;
    for round in 0..rounds {
        let mut stream = Seed(17).stream(Domain::Bootstrap, 0, round);
        let mut draw = |count: usize| {
            let mut rows = Vec::new();
            let mut labels = Vec::new();
            for _ in 0..count {
                let weights: Vec<f64> = (0..CLASSES).map(|_| libm::exp(2.0 * stream.normal())).collect();
                let sum: f64 = weights.iter().sum();
                rows.extend(weights.iter().map(|w| (w / sum) as f32));
                // The model is wrong on purpose: labels are drawn from a flatter law than it claims.
                let mut left = stream.uniform() * weights.iter().map(|w| w.sqrt()).sum::<f64>();
                let label = weights.iter().position(|w| {
                    left -= w.sqrt();
                    left < 0.0
                });
                labels.push(label.unwrap_or(CLASSES - 1) as u32);
            }
            (rows, labels)
        };
        let (rows, labels) = draw(n);
        let rule = Conformal::fit(Matrix::new(&rows, n, CLASSES).unwrap(), &labels, score, alpha).unwrap();
        let (rows, labels) = draw(new_samples);
        for (i, (row, label)) in rows.chunks(CLASSES).zip(&labels).enumerate() {
            let sample = round * new_samples as u64 + i as u64;
            covered += usize::from(rule.set(row, sample).contains(label));
        }
    }
    covered as f64 / (rounds as usize * new_samples) as f64
}

#[test]
fn the_guaranteed_coverage_is_kept() {
    let randomised = Score::RandomisedAps { seed: Seed(23) };
    for (alpha, n, rank) in [(0.1, 19, 18), (0.3, 19, 14), (0.1, 60, 55)] {
        // Coverage given the calibration set is Beta(k, n + 1 − k) for scores without ties. Four standard
        // errors of its mean over 400 sets of 50 samples are less than the 1/(n + 1) of a rank, at n = 19.
        let exact = f64::from(rank) / (n + 1) as f64;
        let variance = exact * (1.0 - exact) * (1.0 / (n + 2) as f64 / 400.0 + 1.0 / 20_000.0);
        let margin = 4.0 * variance.sqrt();
        assert!(n > 19 || margin < 0.5 / (n + 1) as f64, "{margin}");
        for score in [Score::Lac, randomised] {
            let share = coverage(score, alpha, n);
            assert!((share - exact).abs() < margin, "{score:?} {alpha} {share} {exact}");
        }
        assert!(coverage(Score::Aps, alpha, n) > exact - margin);
    }
}

#[test]
fn bad_input_is_an_error() {
    let p = [0.5_f32, 0.5];
    let rows = Matrix::new(&p, 1, 2).unwrap();
    for alpha in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(Conformal::fit(rows, &[0], Score::Lac, alpha).is_err());
    }
    assert!(Conformal::fit(rows, &[2], Score::Lac, 0.1).is_err());
    let high = Matrix::new(&[1.5, 0.0], 1, 2).unwrap();
    assert_eq!(
        Conformal::fit(high, &[0], Score::Lac, 0.1).unwrap_err().to_string(),
        "the probability of class 0 in row 0 is 1.5; it must be in [0, 1]"
    );
}

#[test]
fn weights_of_groups_add_up() {
    // Three groups: the first has the scores 0.1 and 0.9, the others 0.2 and 0.3. In quarters: a half, one, one, a half.
    let scores = [0.1, 0.9, 0.2, 0.3];
    let groups = [5, 5, 1, 2];
    let threshold =
        |alpha: f64| Conformal::from_grouped_scores(&scores, &groups, Score::Lac, alpha).unwrap().threshold;
    assert_eq!(threshold(0.25), Some(0.9));
    assert_eq!(threshold(0.3), Some(0.9));
    assert_eq!(threshold(0.4), Some(0.3));
    assert_eq!(threshold(0.7), Some(0.2));
    assert_eq!(threshold(0.9), Some(0.1));
    assert_eq!(threshold(0.24), None);
    assert!(Conformal::from_grouped_scores(&scores, &groups[1..], Score::Lac, 0.1).is_err());
}

#[test]
fn groups_of_one_change_nothing() {
    let scores: Vec<f64> = (0..97).map(|n| f64::from(n * 37 % 97) / 97.0).collect();
    let groups: Vec<u32> = (0..97).map(|n| n * 5).collect();
    for alpha in [0.005, 0.01, 0.05, 0.1, 0.29, 0.5, 0.9] {
        let grouped = Conformal::from_grouped_scores(&scores, &groups, Score::Lac, alpha).unwrap();
        assert_eq!(grouped, Conformal::from_scores(scores.clone(), Score::Lac, alpha).unwrap(), "{alpha}");
    }
}
