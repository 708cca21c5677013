//! Properties of the calibration measures that hold for any predictions.

use std::num::NonZeroU16;

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};
use calmix_metrics::measure::{
    BinTotals, Binned, Binning, ClassMeans, ClassRows, ClassWise, Counts, Edges, ReliabilityBin,
    RiskCoverage, TopLabel, aurc, brier_score, class_wise_ece, confidence_gap, coverage_curve,
    debiased_squared_error, ece, mean_confidence, nll_from_logits, reliability_bins, smooth_ece,
};
use calmix_metrics::stats::resample;
use proptest::{prelude::*, test_runner::RngSeed};

/// Sums of at most 60 numbers of order one in different orders of f64: 60 · 60 · 2⁻⁵³ ≈ 4e-13 at the worst.
const ROUNDING: f64 = 1e-12;

fn binning() -> impl Strategy<Value = Binning> {
    let bins = (1_u16..40).prop_map(|bins| NonZeroU16::new(bins).unwrap());
    let edges = prop_oneof![Just(Edges::LeftClosed), Just(Edges::RightClosed), Just(Edges::Torchmetrics)];
    prop_oneof![
        (bins.clone(), edges).prop_map(|(bins, edges)| Binning::EqualWidth { bins, edges }),
        bins.prop_map(|bins| Binning::EqualMass { bins }),
    ]
}

/// Confidences with many ties and edges among them.
fn confidence() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..=1.0_f64,
        (0_u8..=10).prop_map(|k| f64::from(k) / 10.0),
        (0_u8..=4).prop_map(|k| f64::from(k) / 4.0),
    ]
}

fn top_label() -> impl Strategy<Value = TopLabel> {
    prop::collection::vec((confidence(), any::<bool>()), 0..60).prop_map(|rows| {
        let (confidence, correct) = rows.into_iter().unzip();
        TopLabel::new(confidence, correct).unwrap()
    })
}

fn shuffled(predictions: &TopLabel, seed: u64) -> TopLabel {
    taken(predictions, &order(predictions.len(), seed))
}

fn taken(predictions: &TopLabel, rows: &[usize]) -> TopLabel {
    let confidence = rows.iter().map(|&i| predictions.confidence()[i]).collect();
    let correct = rows.iter().map(|&i| predictions.correct()[i]).collect();
    TopLabel::new(confidence, correct).unwrap()
}

/// The mean over predictions of the squared gap of their bin.
fn mean_square(bins: &[ReliabilityBin]) -> f64 {
    let total: usize = bins.iter().map(|bin| bin.count).sum();
    let sum: f64 = bins.iter().map(|bin| bin.count as f64 * bin.gap() * bin.gap()).sum();
    sum / total.max(1) as f64
}

/// Rows drawn with repetitions, and how often each was.
fn drawn(n: usize, seed: u64) -> (Vec<usize>, Counts) {
    let mut rows = vec![0; n];
    let mut counts = Counts::once(n);
    resample(Seed(seed), 0, &mut rows);
    counts.draw(&rows);
    (rows, counts)
}

fn order(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Seed(seed).stream(Domain::Bootstrap, 0, 0).shuffle(&mut order);
    order
}

/// Rows of probabilities, the logits they come from, and labels.
#[derive(Debug, Clone)]
struct Predictions {
    classes: usize,
    logits: Vec<Vec<f32>>,
    labels: Vec<u32>,
}

impl Predictions {
    fn flat(&self) -> (Vec<f32>, Vec<f32>) {
        let mut probabilities = Vec::new();
        for row in &self.logits {
            let mut p = vec![0.0; row.len()];
            calmix_core::softmax::softmax_into(row, &mut p);
            probabilities.extend(p);
        }
        (self.logits.concat(), probabilities)
    }

    /// Every measure that takes a matrix.
    fn measures(&self, binning: Binning) -> [f64; 4] {
        let (logits, probabilities) = self.flat();
        let rows = self.labels.len();
        let z = Matrix::new(&logits, rows, self.classes).unwrap();
        let p = Matrix::new(&probabilities, rows, self.classes).unwrap();
        let predictions = TopLabel::from_logits(z, &self.labels, 1.5).unwrap();
        [
            class_wise_ece(p, &self.labels, binning).unwrap(),
            brier_score(p, &self.labels).unwrap(),
            nll_from_logits(z, &self.labels, 1.5).unwrap(),
            ece(&reliability_bins(&predictions, binning)),
        ]
    }

    fn class_wise(&self, binning: Binning, counts: &Counts) -> f64 {
        let (_, probabilities) = self.flat();
        let p = Matrix::new(&probabilities, self.labels.len(), self.classes).unwrap();
        ClassWise::new(p, &self.labels, binning).unwrap().ece(counts)
    }

    fn class_means(&self, counts: &Counts) -> Option<ClassMeans> {
        let predicted = self.logits.iter().map(|row| calmix_core::softmax::argmax(row) as u32).collect();
        ClassRows::new(self.labels.clone(), predicted, self.classes).unwrap().means(counts)
    }

    fn shuffled(&self, seed: u64) -> Self {
        self.taken(&order(self.labels.len(), seed))
    }

    fn taken(&self, rows: &[usize]) -> Self {
        Self {
            classes: self.classes,
            logits: rows.iter().map(|&i| self.logits[i].clone()).collect(),
            labels: rows.iter().map(|&i| self.labels[i]).collect(),
        }
    }
}

fn predictions() -> impl Strategy<Value = Predictions> {
    (1_usize..6).prop_flat_map(|classes| {
        let logit = prop_oneof![-5.0..5.0_f32, (-2_i8..=2).prop_map(f32::from), -1e30..1e30_f32];
        let row = (prop::collection::vec(logit, classes), 0..classes as u32);
        prop::collection::vec(row, 0..20).prop_map(move |rows| {
            let (logits, labels) = rows.into_iter().unzip();
            Predictions { classes, logits, labels }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn shuffled_rows_fall_in_the_same_bins(predictions in top_label(), binning in binning(), seed in 0_u64..1000) {
        let first = reliability_bins(&predictions, binning);
        let second = reliability_bins(&shuffled(&predictions, seed), binning);
        prop_assert_eq!(first.len(), second.len());
        for (a, b) in first.iter().zip(&second) {
            prop_assert_eq!((a.lower, a.upper, a.count, a.accuracy), (b.lower, b.upper, b.count, b.accuracy));
            prop_assert!((a.confidence - b.confidence).abs() < ROUNDING);
        }
        prop_assert_eq!(first.iter().map(|bin| bin.count).sum::<usize>(), predictions.len());
    }

    #[test]
    fn shuffled_rows_measure_the_same(predictions in top_label(), binning in binning(), seed in 0_u64..1000) {
        let other = shuffled(&predictions, seed);
        let measures = |predictions: &TopLabel| {
            let bins = reliability_bins(predictions, binning);
            [ece(&bins), debiased_squared_error(&bins)]
        };
        for (first, second) in measures(&predictions).iter().zip(measures(&other)) {
            prop_assert!((first - second).abs() < ROUNDING, "{first} {second}");
        }
        prop_assert_eq!(smooth_ece(&predictions), smooth_ece(&other));
        prop_assert_eq!(coverage_curve(&predictions), coverage_curve(&other));
        prop_assert_eq!(aurc(&predictions), aurc(&other));
    }

    #[test]
    fn shuffled_rows_score_the_same(given in predictions(), binning in binning(), seed in 0_u64..1000) {
        let first = given.measures(binning);
        let second = given.shuffled(seed).measures(binning);
        for (first, second) in first.iter().zip(second) {
            // Logits up to 1e30 make likelihoods as large: compare relative to them.
            prop_assert!((first - second).abs() <= ROUNDING * first.abs().max(1.0), "{first} {second}");
            prop_assert!(first.is_finite() && *first >= 0.0);
        }
    }

    #[test]
    fn a_row_that_counts_twice_is_a_row_that_is_there_twice(
        predictions in top_label(), binning in binning(), seed in 0_u64..1000,
    ) {
        let (rows, counts) = drawn(predictions.len(), seed);
        let second = taken(&predictions, &rows);
        let counted = Binned::new(&predictions, binning).bins(&counts);
        let repeated = reliability_bins(&second, binning);
        prop_assert_eq!(counted.len(), repeated.len());
        for (a, b) in counted.iter().zip(&repeated) {
            prop_assert_eq!((a.lower, a.upper, a.count, a.accuracy), (b.lower, b.upper, b.count, b.accuracy));
            prop_assert!((a.confidence - b.confidence).abs() < ROUNDING);
        }
        prop_assert_eq!(RiskCoverage::new(&predictions).aurc(&counts), aurc(&second));
    }

    #[test]
    fn a_row_that_counts_twice_is_there_twice_in_every_class(
        given in predictions(), binning in binning(), seed in 0_u64..1000,
    ) {
        let (rows, counts) = drawn(given.labels.len(), seed);
        let second = given.taken(&rows).measures(binning)[0];
        prop_assert!((given.class_wise(binning, &counts) - second).abs() < ROUNDING);
    }

    #[test]
    fn class_means_are_of_rows_in_any_order(given in predictions(), seed in 0_u64..1000) {
        let once = Counts::once(given.labels.len());
        let (rows, counts) = drawn(given.labels.len(), seed);
        // Counts are whole numbers, so not even the last bit depends on the order.
        let means = given.class_means(&once);
        prop_assert_eq!(means, given.shuffled(seed).class_means(&once));
        prop_assert_eq!(given.class_means(&counts), given.taken(&rows).class_means(&once));
        prop_assert_eq!(means.is_none(), given.labels.is_empty());
        let shares = means.map_or([0.0, 0.0], |means| [means.balanced_error, means.macro_f1]);
        prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
    }

    #[test]
    fn errors_are_ordered_and_in_range(predictions in top_label(), binning in binning()) {
        let bins = reliability_bins(&predictions, binning);
        let ece = ece(&bins);
        let squares = mean_square(&bins);
        prop_assert!(0.0 <= ece && ece * ece <= squares + ROUNDING && squares <= 1.0);
        prop_assert!(debiased_squared_error(&bins) <= squares + ROUNDING);
        let smooth = smooth_ece(&predictions);
        prop_assert!((0.0..=1.0).contains(&smooth.error) && smooth.error <= smooth.bandwidth);
    }

    #[test]
    fn the_signed_gap_needs_no_bins(predictions in top_label(), binning in binning()) {
        let bins = reliability_bins(&predictions, binning);
        let n = predictions.len().max(1) as f64;
        let mean = predictions.confidence().iter().sum::<f64>() / n;
        let right = predictions.correct().iter().filter(|&&right| right).count() as f64 / n;
        prop_assert!((mean_confidence(&bins) - mean).abs() < ROUNDING);
        prop_assert!((confidence_gap(&bins) - (mean - right)).abs() < ROUNDING);
        prop_assert!(confidence_gap(&bins).abs() <= ece(&bins) + ROUNDING);
    }

    #[test]
    fn batches_add_up_to_the_bins_of_all(predictions in top_label(), cut in 0_usize..60) {
        let mut totals = [BinTotals::default(), BinTotals::default()];
        for (row, (&confidence, &correct)) in predictions.confidence().iter().zip(predictions.correct()).enumerate() {
            totals[usize::from(row >= cut)].add(confidence, correct);
        }
        let [mut first, second] = totals;
        prop_assert_eq!(second.numbers().len(), BinTotals::WIDTH);
        first.add_numbers(&second.numbers());
        let found = first.bins();
        let expected = reliability_bins(&predictions, Binning::default());
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!((found.lower, found.upper, found.count), (expected.lower, expected.upper, expected.count));
            prop_assert_eq!(found.accuracy, expected.accuracy);
            prop_assert!((found.confidence - expected.confidence).abs() < ROUNDING);
        }
    }

    #[test]
    fn one_bin_measures_the_overall_gap(predictions in top_label(), edges in prop_oneof![
        Just(Edges::LeftClosed), Just(Edges::RightClosed),
    ]) {
        let bins = reliability_bins(&predictions, Binning::EqualWidth { bins: NonZeroU16::MIN, edges });
        let mean = predictions.confidence().iter().sum::<f64>() / predictions.len().max(1) as f64;
        prop_assert!((ece(&bins) - (mean - predictions.accuracy()).abs()).abs() < ROUNDING);
    }

    #[test]
    fn the_calibrated_have_no_error(groups in prop::collection::vec((1_usize..12, 0_usize..12), 1..5), binning in binning()) {
        // Whole groups of confidence k/n of which exactly k are right: bins of any kind keep a group together.
        let mut confidence = Vec::new();
        let mut correct = Vec::new();
        for (n, k) in groups {
            let k = k.min(n);
            for i in 0..n {
                confidence.push(k as f64 / n as f64);
                correct.push(i < k);
            }
        }
        let predictions = TopLabel::new(confidence, correct).unwrap();
        let bins = reliability_bins(&predictions, binning);
        prop_assert!(ece(&bins) < ROUNDING && mean_square(&bins) < ROUNDING);
        prop_assert!(smooth_ece(&predictions).error < ROUNDING);
    }

    #[test]
    fn coverage_ends_with_everything(predictions in top_label()) {
        let curve = coverage_curve(&predictions);
        prop_assert!(curve.windows(2).all(|w| w[0].coverage < w[1].coverage && w[0].threshold > w[1].threshold));
        if let Some(last) = curve.last() {
            prop_assert_eq!(last.coverage, 1.0);
            prop_assert!((last.risk - (1.0 - predictions.accuracy())).abs() < ROUNDING);
        }
        prop_assert!((0.0..=1.0).contains(&aurc(&predictions)));
    }

    #[test]
    fn all_ties_have_the_risk_of_chance(n in 1_usize..50, right in 0_usize..50, c in confidence()) {
        let correct: Vec<bool> = (0..n).map(|i| i < right).collect();
        let predictions = TopLabel::new(vec![c; n], correct).unwrap();
        prop_assert!((aurc(&predictions) - (1.0 - predictions.accuracy())).abs() < ROUNDING);
    }
}
