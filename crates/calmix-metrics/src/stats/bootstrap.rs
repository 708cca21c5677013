//! Bootstrap intervals: how much a statistic varies when the samples are resampled with replacement.
//!
//! Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13. Replicate `r` is a function of
//! the seed, `r` and n alone: replicates can be computed in any order, and more of them never change the
//! first ones. The percentile interval does not correct bias: the ECE, which is biased upwards on few
//! samples, is more so in every replicate, and its interval is too high.
//!
//! No crate is used: those available were last released in 2022 and 2024, and do not key replicates by their number.

use calmix_core::rng::{Domain, Seed};

use crate::checked;
use crate::error::MetricsError;

/// Writes the samples of one replicate into `indices`: as many as it holds, each below its length.
pub fn resample(seed: Seed, replicate: u64, indices: &mut [usize]) {
    let n = indices.len();
    let mut stream = seed.stream(Domain::Bootstrap, 0, replicate);
    indices.fill_with(|| stream.index(n));
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
    checked::probability("level", level)?;
    if replicates.is_empty() {
        return Err(MetricsError::TooFew { needed: 1, got: 0 });
    }
    checked::finite("the statistic of replicate", replicates)?;
    let mut sorted = replicates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let tail = 0.5 * (1.0 - level);
    Ok((quantile(&sorted, tail), quantile(&sorted, 1.0 - tail)))
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

    /// The means of the replicates of some numbers.
    fn means(x: &[f64], replicates: u64, seed: Seed) -> Vec<f64> {
        let mut rows = vec![0; x.len()];
        let mean = |replicate| {
            resample(seed, replicate, &mut rows);
            rows.iter().map(|&i| x[i]).sum::<f64>() / rows.len() as f64
        };
        (0..replicates).map(mean).collect()
    }

    #[test]
    fn quantiles_are_numpys() {
        // numpy.quantile([1, 2, 4, 8], [0, 0.25, 0.5, 0.875, 1])
        let q = [0.0, 0.25, 0.5, 0.875, 1.0].map(|p| quantile(&[1.0, 2.0, 4.0, 8.0], p));
        assert_eq!(q, [1.0, 1.75, 3.0, 6.5, 8.0]);
        assert_eq!(quantile(&[3.0], 0.7), 3.0);
    }

    #[test]
    fn replicates_depend_on_seed_and_number() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let few = means(&x, 50, Seed(4));
        assert_eq!(few, means(&x, 200, Seed(4))[..50]);
        assert_ne!(few, means(&x, 50, Seed(5)));
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
        let means = means(&x, 2_000, Seed(8));
        let spread = crate::stats::Summary::of(&means).unwrap().deviation.unwrap();
        let expected = ((100.0 * 100.0 - 1.0) / 12.0_f64).sqrt() / 10.0;
        assert!((spread / expected - 1.0).abs() < 0.064, "{spread} {expected}");
        let (low, high) = percentile_interval(&means, 0.95).unwrap();
        assert!((0.5 * (high - low) / (1.96 * expected) - 1.0).abs() < 0.1, "{low} {high}");
    }

    #[test]
    fn replicates_and_level_are_checked() {
        for (replicates, level) in [(&[][..], 0.9), (&[1.0], 0.0), (&[1.0], 1.0), (&[1.0, f64::NAN], 0.9)] {
            assert!(percentile_interval(replicates, level).is_err(), "{replicates:?} {level}");
        }
    }
}
