//! Bootstrap intervals: how much a statistic varies when the samples are resampled with replacement.
//!
//! Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13. Replicate `r` is a function of
//! the seed, `r` and n alone: replicates can be computed in any order, and more of them never change the
//! first ones. The percentile interval does not correct bias: the ECE, which is biased upwards on few
//! samples, is more so in every replicate, and its interval is too high.
//!
//! No crate is used: those available were last released in 2022 and 2024, and do not key replicates by their number.

use calmix_core::rng::{Domain, Seed};
use serde::{Deserialize, Serialize};

use super::{Estimate, check_finite, check_level};
use crate::error::MetricsError;

/// A percentile interval and the replicates behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// The statistic of the original samples, with two quantiles of the replicates as its interval.
    pub interval: Estimate,
    /// The statistic of every replicate, in the order of replicates.
    pub replicates: Vec<f64>,
}

/// The difference of two statistics on the same samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairedBootstrap {
    /// The bootstrap of `second − first`.
    pub difference: Bootstrap,
    /// Two-sided p-value of no difference: twice the share of replicates on the rarer side of zero, each
    /// count one higher, so that it is never zero.
    pub p_value: f64,
}

/// Writes the samples of one replicate into `indices`: as many as it holds, each below its length.
pub fn resample(seed: Seed, replicate: u64, indices: &mut [usize]) {
    let n = indices.len();
    let mut stream = seed.stream(Domain::Bootstrap, 0, replicate);
    indices.fill_with(|| stream.index(n));
}

/// Computes the percentile interval at `level` of a statistic of `n` samples, from `replicates` replicates.
///
/// `statistic` gets the indices of samples, with repetitions. The interval is that of [`percentile_interval`].
///
/// ```
/// use calmix_core::rng::Seed;
/// use calmix_metrics::stats::bootstrap;
///
/// let right = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
/// let accuracy = |rows: &[usize]| rows.iter().map(|&i| right[i]).sum::<f64>() / rows.len() as f64;
/// let interval = bootstrap(8, 1_000, 0.9, Seed(1), accuracy)?.interval;
/// assert_eq!((interval.estimate, interval.n), (0.75, 8));
/// assert_eq!((interval.low, interval.high), (0.5, 1.0));
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
///
/// # Errors
/// If there are fewer than two samples (resampling a single one would give an interval of zero width) or no
/// replicates, if `level` is not between 0 and 1, or if the statistic is not finite on some replicate.
pub fn bootstrap(
    n: usize,
    replicates: usize,
    level: f64,
    seed: Seed,
    statistic: impl Fn(&[usize]) -> f64,
) -> Result<Bootstrap, MetricsError> {
    check_level("level", level)?;
    if n < 2 {
        return Err(MetricsError::TooFew { needed: 2, got: n });
    }
    let mut indices: Vec<usize> = (0..n).collect();
    let estimate = statistic(&indices);
    check_finite("the statistic of all samples", &[estimate])?;
    let mut of_replicate = Vec::with_capacity(replicates);
    for replicate in 0..replicates as u64 {
        resample(seed, replicate, &mut indices);
        of_replicate.push(statistic(&indices));
    }
    let (low, high) = percentile_interval(&of_replicate, level)?;
    Ok(Bootstrap { interval: Estimate { n, estimate, low, high, level }, replicates: of_replicate })
}

/// Computes the percentile interval at `level` of given replicates, for example if each draw gives several statistics:
/// quantiles with linear interpolation (NumPy's default).
///
/// ```
/// use calmix_metrics::stats::percentile_interval;
///
/// let replicates: Vec<f64> = (0..=100).rev().map(f64::from).collect();
/// assert_eq!(percentile_interval(&replicates, 0.5)?, (25.0, 75.0));
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
///
/// # Errors
/// If there are no replicates, one is not finite, or `level` is not between 0 and 1.
pub fn percentile_interval(replicates: &[f64], level: f64) -> Result<(f64, f64), MetricsError> {
    check_level("level", level)?;
    if replicates.is_empty() {
        let what = "number of replicates";
        return Err(MetricsError::Argument { what, index: 0, value: 0.0, allowed: "positive" });
    }
    check_finite("the statistic of replicate", replicates)?;
    let mut sorted = replicates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let tail = 0.5 * (1.0 - level);
    Ok((quantile(&sorted, tail), quantile(&sorted, 1.0 - tail)))
}

/// Computes the difference of two statistics on the same replicates of the same samples.
///
/// # Errors
/// As [`bootstrap`].
pub fn paired_bootstrap(
    n: usize,
    replicates: usize,
    level: f64,
    seed: Seed,
    first: impl Fn(&[usize]) -> f64,
    second: impl Fn(&[usize]) -> f64,
) -> Result<PairedBootstrap, MetricsError> {
    let difference = bootstrap(n, replicates, level, seed, |rows| second(rows) - first(rows))?;
    let count = |side: fn(&f64) -> bool| difference.replicates.iter().filter(|d| side(d)).count();
    let rarer = count(|&d| d <= 0.0).min(count(|&d| d >= 0.0));
    let p_value = (2.0 * (rarer + 1) as f64 / (replicates + 1) as f64).min(1.0);
    Ok(PairedBootstrap { difference, p_value })
}

/// Returns the `p`-quantile of sorted numbers, linear between the two nearest (Hyndman and Fan's type 7).
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p * sorted.len().saturating_sub(1) as f64;
    let below = place.floor();
    let at = |i: usize| sorted.get(i).or(sorted.last()).copied().unwrap_or(f64::NAN);
    let a = at(below as usize);
    let b = at(below as usize + 1);
    a + (b - a) * (place - below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(x: &[f64]) -> impl Fn(&[usize]) -> f64 {
        move |rows| rows.iter().map(|&i| x[i]).sum::<f64>() / rows.len() as f64
    }

    #[test]
    fn quantiles_are_numpys() {
        // numpy.quantile([1, 2, 4, 8], [0, 0.25, 0.5, 0.875, 1])
        let q = [0.0, 0.25, 0.5, 0.875, 1.0].map(|p| quantile(&[1.0, 2.0, 4.0, 8.0], p));
        assert_eq!(q, [1.0, 1.75, 3.0, 6.5, 8.0]);
        assert_eq!(quantile(&[3.0], 0.7), 3.0);
    }

    #[test]
    fn a_replicate_is_a_function_of_its_number() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let few = bootstrap(20, 50, 0.9, Seed(4), mean(&x)).unwrap();
        let many = bootstrap(20, 200, 0.9, Seed(4), mean(&x)).unwrap();
        assert_eq!(few.replicates, many.replicates[..50]);
        let mut rows = [0; 20];
        resample(Seed(4), 33, &mut rows);
        assert_eq!(many.replicates[33], mean(&x)(&rows));
        assert_ne!(bootstrap(20, 50, 0.9, Seed(5), mean(&x)).unwrap(), few);
    }

    #[test]
    fn every_sample_is_drawn_equally_often() {
        let mut counts = [0_u32; 5];
        for replicate in 0..2_000 {
            let mut rows = [0; 5];
            resample(Seed(6), replicate, &mut rows);
            for row in rows {
                counts[row] += 1;
            }
        }
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 2e3).powi(2) / 2e3).sum();
        assert!(chi2 < 18.5, "chi-square of {chi2} on 4 degrees of freedom"); // p = 0.001
    }

    #[test]
    fn the_spread_is_that_of_the_mean() {
        // The bootstrap deviation of a mean is the population deviation over √n, up to Monte Carlo error:
        // 1/√(2·2000) = 1.6%, so four of them are 6.4%.
        let x: Vec<f64> = (0..100).map(f64::from).collect();
        let boot = bootstrap(100, 2_000, 0.95, Seed(8), mean(&x)).unwrap();
        let spread = super::super::Summary::of(&boot.replicates).unwrap().deviation.unwrap();
        let expected = ((100.0 * 100.0 - 1.0) / 12.0_f64).sqrt() / 10.0;
        assert!((spread / expected - 1.0).abs() < 0.064, "{spread} {expected}");
        let half = 0.5 * (boot.interval.high - boot.interval.low);
        assert!((half / (1.96 * expected) - 1.0).abs() < 0.1, "{half}");
    }

    #[test]
    fn pairing_removes_what_both_share() {
        let level: Vec<f64> = (0..30).map(|i| f64::from(i * 17 % 30)).collect();
        let better: Vec<f64> =
            level.iter().enumerate().map(|(i, x)| x + 0.1 + 0.01 * (i % 3) as f64).collect();
        let paired = paired_bootstrap(30, 999, 0.95, Seed(2), mean(&level), mean(&better)).unwrap();
        assert!(paired.difference.interval.low > 0.1 && paired.difference.interval.high < 0.12);
        assert_eq!(paired.p_value, 2.0 / 1000.0);
        let same = paired_bootstrap(30, 99, 0.95, Seed(2), mean(&level), mean(&level)).unwrap();
        assert_eq!((same.p_value, same.difference.interval.high), (1.0, 0.0));
    }

    #[test]
    fn what_cannot_be_answered_is_an_error() {
        let one = |_: &[usize]| 1.0;
        for n in [0, 1] {
            assert_eq!(bootstrap(n, 10, 0.9, Seed(0), one), Err(MetricsError::TooFew { needed: 2, got: n }));
        }
        assert!(bootstrap(2, 0, 0.9, Seed(0), one).is_err());
        assert!(bootstrap(2, 10, 1.0, Seed(0), one).is_err());
        assert!(bootstrap(2, 10, 0.9, Seed(0), |_| f64::NAN).is_err());
        for (replicates, level) in [(&[][..], 0.9), (&[1.0], 0.0), (&[1.0], 1.0), (&[1.0, f64::NAN], 0.9)] {
            assert!(percentile_interval(replicates, level).is_err(), "{replicates:?} {level}");
        }
    }
}
