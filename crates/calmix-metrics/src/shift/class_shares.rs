//! The shares of classes among samples without labels, by maximum likelihood on calibrated probabilities (Saerens and others,
//! 2002; Alexandari and others, arXiv 1901.06852).

use calmix_core::matrix::Matrix;
use calmix_core::matrix::cholesky::Cholesky;

use crate::checked;
use crate::error::MetricsError;

/// The largest number of iterations.
const MAX_ITERATIONS: usize = 500;
/// EM ends when no share changes by more than this.
const TOLERANCE: f64 = 1e-7;
/// The smallest share.
const MIN_SHARE: f64 = 1e-6;
/// The largest number of classes whose intervals are computed, which takes time in the square of it for each row.
const MAX_CLASSES: usize = 256;
/// The standard normal quantile of a 95% interval.
const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;

/// Estimated shares of the classes.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassShares {
    /// The share of each class.
    pub shares: Vec<f64>,
    /// The 95% interval of each share; empty with more than 256 classes.
    pub intervals: Vec<[f64; 2]>,
}

/// Returns the shares of the classes among labels, with half a label added to each class, so that none is zero.
pub fn label_shares(labels: &[u32], classes: usize) -> Vec<f64> {
    let mut counts = vec![0.5; classes];
    for &label in labels {
        if let Some(count) = counts.get_mut(label as usize) {
            *count += 1.0;
        }
    }
    let total: f64 = counts.iter().sum();
    counts.iter().map(|count| count / total).collect()
}

impl ClassShares {
    /// Estimates the shares among samples from their calibrated probabilities. `source` are the shares among the `labels`
    /// held-out labels that the calibrator was fitted on.
    ///
    /// The intervals hold the error of samples and labels: the inverse Fisher information of the shares, as if it were known no
    /// better than from that many labels.
    ///
    /// # Errors
    /// If there are no samples, or `source` has another number of classes or a share that is not positive.
    pub fn estimate(probabilities: Matrix<'_>, source: &[f64], labels: usize) -> Result<Self, MetricsError> {
        checked::length("source shares", probabilities.width(), source.len())?;
        checked::values("the source share of class", source, "positive", |share| share > 0.0)?;
        if probabilities.rows() == 0 {
            return Err(MetricsError::NoSamples);
        }
        let n = probabilities.rows() as f64;
        let mut shares = source.to_vec();
        let mut row = vec![0.0; source.len()];
        for _ in 0..MAX_ITERATIONS {
            let mut sums = vec![0.0; source.len()];
            for p in probabilities.iter() {
                posterior(p, &shares, source, &mut row);
                sums.iter_mut().zip(&row).for_each(|(sum, r)| *sum += r);
            }
            for sum in &mut sums {
                *sum = (*sum / n).max(MIN_SHARE);
            }
            let total: f64 = sums.iter().sum();
            for sum in &mut sums {
                *sum /= total;
            }
            let change = sums.iter().zip(&shares).map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
            shares = sums;
            if change < TOLERANCE {
                break;
            }
        }
        let intervals = intervals(probabilities, source, &shares, 1.0 / n + 1.0 / labels.max(1) as f64);
        Ok(Self { shares, intervals })
    }
}

/// Computes the probabilities of a row under other shares.
fn posterior(p: &[f32], shares: &[f64], source: &[f64], out: &mut [f64]) {
    let mut total = 0.0;
    for (((out, &p), share), source) in out.iter_mut().zip(p).zip(shares).zip(source) {
        *out = f64::from(p) * share / source;
        total += *out;
    }
    if total > 0.0 {
        for r in out.iter_mut() {
            *r /= total;
        }
    }
}

/// Computes the intervals of the shares. With A the mean of r·rᵀ over the posteriors r, and D the diagonal of the shares q, the
/// covariance of one observation is D·A⁻¹·D − q·qᵀ.
fn intervals(probabilities: Matrix<'_>, source: &[f64], shares: &[f64], scale: f64) -> Vec<[f64; 2]> {
    let classes = shares.len();
    if classes > MAX_CLASSES {
        return Vec::new();
    }
    let mut products = vec![0.0; classes * classes];
    let mut row = vec![0.0; classes];
    for p in probabilities.iter() {
        posterior(p, shares, source, &mut row);
        for (i, a) in row.iter().enumerate() {
            let line = &mut products[i * classes..=i * classes + i];
            line.iter_mut().zip(&row).for_each(|(sum, b)| *sum += a * b);
        }
    }
    for sum in &mut products {
        *sum /= probabilities.rows() as f64;
    }
    for (class, share) in shares.iter().enumerate() {
        products[class * classes + class] += 1e-6 * share;
    }
    let Some(factors) = Cholesky::new(&products, classes) else { return Vec::new() };
    let mut found = Vec::with_capacity(classes);
    for (class, &share) in shares.iter().enumerate() {
        let mut unit = vec![0.0; classes];
        unit[class] = 1.0;
        let variance = share * share * (factors.solve(&unit)[class] - 1.0);
        let half = NORMAL_QUANTILE * libm::sqrt((variance * scale).max(0.0));
        found.push([(share - half).max(0.0), (share + half).min(1.0)]);
    }
    found
}

#[cfg(test)]
mod tests {
    use calmix_core::rng::{Domain, Seed};

    use super::*;

    /// Two classes with scores N(±1, 1): the posterior under equal shares, and draws under others.
    fn drawn(n: usize, share: f64, seed: u64) -> Vec<f32> {
        let mut stream = Seed(seed).stream(Domain::Bootstrap, 0, 0);
        let mut probabilities = Vec::with_capacity(2 * n);
        for _ in 0..n {
            let sign = if stream.uniform() < share { 1.0 } else { -1.0 };
            let p = 1.0 / (1.0 + (-2.0 * (sign + stream.normal())).exp());
            probabilities.extend([p as f32, (1.0 - p) as f32]);
        }
        probabilities
    }

    #[test]
    fn intervals_cover_the_true_share() {
        for (share, n) in [(0.5, 200), (0.1, 400), (0.8, 100)] {
            let mut covered = 0;
            let mut sum = 0.0;
            for seed in 0..300 {
                let probabilities = drawn(n, share, seed);
                // As if the probabilities were exact.
                let found = ClassShares::estimate(
                    Matrix::new(&probabilities, n, 2).unwrap(),
                    &[0.5, 0.5],
                    usize::MAX,
                )
                .unwrap();
                sum += found.shares[0];
                covered += u32::from((found.intervals[0][0]..=found.intervals[0][1]).contains(&share));
                assert!((found.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
            assert!((sum / 300.0 - share).abs() < 0.01, "{share}: {}", sum / 300.0);
            // 95% of 300, with a standard error of 4.
            assert!((271..=297).contains(&covered), "{share}: {covered} of 300");
        }
    }

    #[test]
    fn missing_class_and_wrong_input() {
        let probabilities = [0.999_f32, 0.0005, 0.0005].repeat(50);
        let rows = Matrix::new(&probabilities, 50, 3).unwrap();
        let found = ClassShares::estimate(rows, &[1.0 / 3.0; 3], 30).unwrap();
        assert!(
            found.shares[0] > 0.99 && found.shares[1] < 0.01 && found.intervals[1][0] == 0.0,
            "{found:?}"
        );
        assert!(ClassShares::estimate(rows, &[0.5, 0.5], 30).is_err());
        assert!(ClassShares::estimate(rows, &[1.0, 0.0, 0.5], 30).is_err());
        assert!(ClassShares::estimate(Matrix::new(&[], 0, 2).unwrap(), &[0.5, 0.5], 30).is_err());
        assert_eq!(label_shares(&[0, 0, 1, 7], 2), [0.625, 0.375]);
    }
}
