//! The exact interval of a share, such as an error rate or the precision above a threshold.
//!
//! Clopper and Pearson's interval covers the true share with at least its nominal probability, for any number of samples:
//! with no errors on four images, the error is between 0 and 60%, not between 0 and 0.

use super::Estimate;
use super::incomplete_beta::regularised;
use crate::checked;
use crate::error::MetricsError;

/// Computes the exact interval of a share, given `hits` among `n` samples.
///
/// ```
/// let error = calmix_metrics::stats::clopper_pearson(0, 4, 0.95)?;
/// assert_eq!((error.estimate, error.low), (0.0, 0.0));
/// assert!((error.high - 0.602).abs() < 1e-3);
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
///
/// # Errors
///
/// Without samples, with more hits than samples, or if the level is not in (0, 1).
pub fn clopper_pearson(hits: usize, n: usize, level: f64) -> Result<Estimate, MetricsError> {
    check(hits, n, level, "level")?;
    let tail = 0.5 * (1.0 - level);
    let estimate = hits as f64 / n as f64;
    Ok(Estimate { n, estimate, low: lower(hits, n, tail), high: 1.0 - lower(n - hits, n, tail), level })
}

/// Computes the lower bound of the true share that holds except with probability `delta`: Clopper and Pearson's one-sided
/// interval.
pub fn share_at_least(hits: usize, n: usize, delta: f64) -> Result<f64, MetricsError> {
    check(hits, n, delta, "delta")?;
    Ok(lower(hits, n, delta))
}

fn check(hits: usize, n: usize, value: f64, what: &'static str) -> Result<(), MetricsError> {
    if n == 0 {
        return Err(MetricsError::TooFew { needed: 1, got: 0 });
    }
    checked::parameter("number of hits", hits as f64, "at most the number of samples", |_| hits <= n)?;
    checked::probability(what, value)
}

/// Finds the share at which `hits` or more of `n` have the probability `tail`.
fn lower(hits: usize, n: usize, tail: f64) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    let a = hits as f64;
    let b = (n - hits + 1) as f64;
    let mut low = 0.0;
    let mut high = 1.0;
    // Bisection, to the last bit: the probability grows with the share.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return low;
        }
        if regularised(a, b, middle) < tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.binomtest(hits, n).proportion_ci(0.95, "exact")`, scipy 1.17.
    #[test]
    fn intervals_are_scipys() {
        let rows = [
            (0, 4, 0.0, 0.602_364_635_616_485_8),
            (1, 4, 0.006_309_463_209_709_889, 0.805_879_550_316_756_6),
            (5, 50, 0.033_275_093_589_021_51, 0.218_135_366_434_202_2),
            (17, 200, 0.050_295_918_630_241_78, 0.132_605_165_829_552_6),
            (1234, 10_000, 0.117_014_108_240_284_73, 0.130_006_093_763_646_7),
            (9999, 10_000, 0.999_442_963_002_013, 0.999_997_468_222_436_7),
        ];
        for (hits, n, low, high) in rows {
            let interval = clopper_pearson(hits, n, 0.95).unwrap();
            assert!((interval.low - low).abs() < 1e-11, "{hits} of {n}: {interval:?}");
            assert!((interval.high - high).abs() < 1e-11, "{hits} of {n}: {interval:?}");
        }
        // scipy.stats.beta.ppf(0.1, 180, 21)
        assert!((share_at_least(180, 200, 0.1).unwrap() - 0.867_183_991_267_038_7).abs() < 1e-11);
    }

    #[test]
    fn wrong_hits_and_levels_are_refused() {
        assert!(clopper_pearson(0, 0, 0.95).is_err());
        assert!(clopper_pearson(5, 4, 0.95).is_err());
        for bad in [0.0, 1.0, f64::NAN] {
            assert!(clopper_pearson(1, 4, bad).is_err() && share_at_least(1, 4, bad).is_err());
        }
    }
}
