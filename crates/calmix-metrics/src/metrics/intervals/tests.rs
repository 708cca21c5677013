use calmix_core::rng::Domain;

use super::*;
use crate::measure::{Binning, ClassRows, ClassWise, nll_of_rows};
use crate::metrics::METRICS;

/// Logits that are right more often than not; every third row repeats the one before, for ties.
fn made(n: usize, classes: usize) -> (Vec<f32>, Vec<u32>) {
    let mut stream = Seed(11).stream(Domain::Split, 0, 0);
    let mut logits: Vec<f32> = Vec::new();
    let mut labels = Vec::new();
    for row in 0..n {
        if row % 3 == 2 {
            logits.extend_from_within(logits.len() - classes..);
        } else {
            logits.extend((0..classes).map(|_| 2.0 * stream.normal() as f32));
        }
        let row = &logits[row * classes..];
        let guess = calmix_core::softmax::argmax(row);
        labels.push(if stream.uniform() < 0.6 { guess } else { stream.index(classes) } as u32);
    }
    (logits, labels)
}

/// All metrics but the smooth error.
fn without_smooth(metrics: &Metrics) -> [f64; COUNT] {
    let all = metrics.values();
    std::array::from_fn(|i| if i < 8 { all[i] } else { all[i + 1] })
}

#[test]
fn counts_give_the_metrics_of_resampled_rows() {
    let mut worst = 0.0_f64;
    for (n, classes, temperature) in [(1, 2, 1.0), (40, 2, 1.0), (97, 7, 0.5), (300, 20, 3.0)] {
        let (logits, labels) = made(n, classes);
        let temperature = Temperature::new(temperature).unwrap();
        let rows =
            PreparedRows::new(Matrix::new(&logits, n, classes).unwrap(), &labels, temperature).unwrap();
        let mut drawn = vec![0; n];
        let mut counts = Counts::once(n);
        for replicate in 0..20 {
            resample(Seed(5), replicate, &mut drawn);
            let z: Vec<f32> =
                drawn.iter().flat_map(|&i| logits[i * classes..(i + 1) * classes].to_vec()).collect();
            let y: Vec<u32> = drawn.iter().map(|&i| labels[i]).collect();
            let direct = Metrics::of(Matrix::new(&z, n, classes).unwrap(), &y, temperature).unwrap();
            counts.draw(&drawn);
            for (found, expected) in rows.metrics(&counts).into_iter().zip(without_smooth(&direct)) {
                worst = worst.max((found - expected).abs());
            }
        }
    }
    // Sums of at most 300 · 20 numbers of at most 20 in another order: n·ε·20 is 3e-11 at the very worst, and a
    // random walk of roundings √n·ε·20 = 3e-13.
    assert!(worst < 3e-13, "{worst}");
}

#[test]
fn intervals_are_a_function_of_the_seed() {
    let (logits, labels) = made(60, 4);
    let of = |seed| {
        let z = Matrix::new(&logits, 60, 4).unwrap();
        Intervals::of(z, &labels, Temperature::IDENTITY, Resampling::default(), seed).unwrap()
    };
    assert_eq!(of(Seed(1)), of(Seed(1)));
    assert_ne!(of(Seed(1)), of(Seed(2)));
}

#[test]
fn too_few_rows_have_no_intervals() {
    let (logits, labels) = made(2, 3);
    let of = |n: usize, how| {
        let z = Matrix::new(&logits[..3 * n], n, 3).unwrap();
        Intervals::of(z, &labels[..n], Temperature::IDENTITY, how, Seed(0)).unwrap()
    };
    assert!(of(2, Resampling::default()).is_some());
    assert!(of(1, Resampling::default()).is_none());
    assert!(of(2, Resampling { replicates: 0, ..Resampling::default() }).is_none());
    assert!(of(2, Resampling { level: 1.0, replicates: 10 }).is_none());
}

#[test]
fn interval_of_one_measure_is_that_of_all() {
    let mut draws = Seed(8).stream(Domain::Bootstrap, 0, 0);
    let logits: Vec<f32> = (0..300).map(|_| 3.0 * draws.normal() as f32).collect();
    let logits = Matrix::new(&logits, 100, 3).unwrap();
    let labels: Vec<u32> = (0..100).map(|_| draws.below(3) as u32).collect();
    let how = Resampling { replicates: 50, level: 0.9 };
    let all = Intervals::of(logits, &labels, Temperature::IDENTITY, how, Seed(3)).unwrap().unwrap();
    let nll = nll_of_rows(logits, &labels, 1.0).unwrap();
    assert_eq!(how.interval(100, Seed(3), |counts| counts.mean(&nll)).unwrap(), all.nll);
    let p = Temperature::IDENTITY.probabilities(logits);
    let p = Matrix::new(&p, 100, 3).unwrap();
    let class_wise = ClassWise::new(p, &labels, Binning::default()).unwrap();
    assert_eq!(how.interval(100, Seed(3), |counts| class_wise.ece(counts)).unwrap(), all.class_wise_ece);
    let predicted = logits.iter().map(|row| calmix_core::softmax::argmax(row) as u32).collect();
    let classes = ClassRows::new(labels.clone(), predicted, 3).unwrap();
    let balanced = |counts: &Counts| classes.means(counts).unwrap().balanced_error;
    let f1 = |counts: &Counts| classes.means(counts).unwrap().macro_f1;
    assert_eq!(how.interval(100, Seed(3), balanced).ok(), all.balanced_error);
    assert_eq!(how.interval(100, Seed(3), f1).ok(), all.macro_f1);
    assert!(how.interval(1, Seed(3), |_| 0.0).is_err());
    assert!(how.interval(100, Seed(3), |_| f64::INFINITY).is_err());
}

/// Each row ten times over is not more evidence than the row alone.
#[test]
fn copies_do_not_narrow_the_intervals() {
    let (logits, labels) = made(60, 3);
    let width = |copies: usize, groups: &[u32]| {
        let logits: Vec<f32> = logits.chunks(3).flat_map(|row| row.repeat(copies)).collect();
        let labels: Vec<u32> = labels.iter().flat_map(|&label| vec![label; copies]).collect();
        let rows = Matrix::new(&logits, 60 * copies, 3).unwrap();
        let rows = PreparedRows::new(rows, &labels, Temperature::IDENTITY).unwrap();
        let intervals = Intervals::of_rows(&rows, groups, Resampling::default(), Seed(1), &|| false);
        let intervals = intervals.unwrap().unwrap();
        [intervals.error, intervals.nll, intervals.balanced_error.unwrap()]
            .map(|interval| interval.high - interval.low)
    };
    let groups: Vec<u32> = (0..600).map(|row| row / 10).collect();
    let alone = width(1, &[]);
    let grouped = width(10, &groups);
    let copied = width(10, &[]);
    for ((alone, grouped), copied) in alone.into_iter().zip(grouped).zip(copied) {
        assert!((alone - grouped).abs() < 1e-9 && copied < 0.5 * alone, "{alone} {grouped} {copied}");
    }
}

#[test]
fn four_samples_have_wide_intervals() {
    let mut metrics = Metrics::from_values([0.0; METRICS]);
    (metrics.mean_confidence, metrics.confidence_gap) = (0.9, -0.1);
    let interval = ExactIntervals::of(&metrics, 4, LEVEL).unwrap();
    assert!(interval.error.low == 0.0 && (interval.error.high - 0.602).abs() < 1e-3);
    // Right between 40 and 100% of the time.
    let gap = interval.confidence_gap;
    assert!((gap.low + 0.1).abs() < 1e-12 && (gap.high - 0.502).abs() < 1e-3, "{gap:?}");
    assert_eq!(ExactIntervals::of(&metrics, 0, LEVEL), None);
    assert_eq!(ExactIntervals::of(&metrics, 4, 1.0), None);
}
