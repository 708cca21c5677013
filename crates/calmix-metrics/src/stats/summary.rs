//! Mean, deviation, Student's interval and tests of a few numbers, such as one result per seed.

use serde::{Deserialize, Serialize};

use super::student_t;
use crate::checked;
use crate::error::MetricsError;

/// The mean and standard deviation of a few numbers.
///
/// ```
/// use calmix_metrics::stats::Summary;
///
/// let errors = Summary::of(&[4.0, 5.0, 6.0])?;
/// assert_eq!((errors.n, errors.mean, errors.deviation), (3, 5.0, Some(1.0)));
/// let interval = errors.interval(0.95)?;
/// assert!((interval.high - 7.484).abs() < 1e-3);
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The sample size.
    pub n: usize,
    /// The mean of the numbers.
    pub mean: f64,
    /// The sample standard deviation (divisor n − 1); `None` for a single number.
    pub deviation: Option<f64>,
}

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The number of samples.
    pub n: usize,
    /// The point estimate.
    pub estimate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The confidence level, for example 0.95.
    pub level: f64,
}

/// The result of a paired test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedTest {
    /// The mean of `second − first`, with Student's interval; its `n` is the number of pairs.
    pub difference: Estimate,
    /// Two-sided p-value of no difference.
    pub p_value: f64,
}

impl Summary {
    /// Summarises `numbers`. The deviation from the mean is computed in a second pass.
    ///
    /// # Errors
    /// If there are none, or one is not finite or so large that the sums are not.
    pub fn of(numbers: &[f64]) -> Result<Self, MetricsError> {
        checked::finite("number", numbers)?;
        let n = numbers.len();
        if n == 0 {
            return Err(MetricsError::TooFew { needed: 1, got: 0 });
        }
        let mean = numbers.iter().sum::<f64>() / n as f64;
        let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
        checked::parameter("sum of squares", squares, "finite", f64::is_finite)?;
        let deviation = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
        Ok(Self { n, mean, deviation })
    }

    /// Computes Student's confidence interval of the mean at `level`, for normally distributed numbers.
    ///
    /// # Errors
    /// If there is only one number, or `level` is not between 0 and 1.
    pub fn interval(&self, level: f64) -> Result<Estimate, MetricsError> {
        checked::probability("level", level)?;
        let error = self.standard_error()?;
        let half = error * student_t::upper_quantile(0.5 * (1.0 - level), (self.n - 1) as f64)?;
        Ok(Estimate { n: self.n, estimate: self.mean, low: self.mean - half, high: self.mean + half, level })
    }

    fn standard_error(&self) -> Result<f64, MetricsError> {
        match self.deviation {
            Some(deviation) if self.n > 1 => Ok(deviation / (self.n as f64).sqrt()),
            _ => Err(MetricsError::TooFew { needed: 2, got: self.n }),
        }
    }
}

/// Runs Student's paired t-test of `second` against `first`, such as two methods on the same seeds.
///
/// If all differences are equal, their variance is zero: the p-value is then 1 if they are zero, otherwise 0.
///
/// # Errors
/// If the two are not equally many or fewer than two, a number is not finite, or `level` is not between 0
/// and 1.
pub fn paired_t_test(first: &[f64], second: &[f64], level: f64) -> Result<PairedTest, MetricsError> {
    checked::length("samples in the second group", first.len(), second.len())?;
    let differences: Vec<f64> = second.iter().zip(first).map(|(b, a)| b - a).collect();
    let summary = Summary::of(&differences)?;
    let difference = summary.interval(level)?;
    let error = summary.standard_error()?;
    let p_value = if summary.mean == 0.0 {
        1.0
    } else if error == 0.0 {
        0.0
    } else {
        2.0 * student_t::upper_tail((summary.mean / error).abs(), (summary.n - 1) as f64)?
    };
    Ok(PairedTest { difference, p_value })
}

/// Adjusts p-values for several tests: rejecting those below α makes any false rejection with probability at most α.
///
/// Holm, "A simple sequentially rejective multiple test procedure", 1979. The results are in the order of `p_values`, never below
/// them, and never above one; empty without p-values.
///
/// ```
/// assert_eq!(calmix_metrics::stats::holm(&[0.25, 0.0625, 0.125])?, [0.25, 0.1875, 0.25]);
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
///
/// # Errors
/// If a p-value is not in [0, 1].
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, MetricsError> {
    checked::values("p-value", p_values, "in [0, 1]", |p| (0.0..=1.0).contains(&p))?;
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (smaller, &i) in order.iter().enumerate() {
        let remaining = (p_values.len() - smaller) as f64;
        largest = largest.max((remaining * p_values[i]).min(1.0));
        adjusted[i] = largest;
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_number_has_no_deviation() {
        let one = Summary::of(&[3.0]).unwrap();
        assert_eq!((one.n, one.mean, one.deviation), (1, 3.0, None));
        assert_eq!(one.interval(0.9), Err(MetricsError::TooFew { needed: 2, got: 1 }));
        assert_eq!(Summary::of(&[]), Err(MetricsError::TooFew { needed: 1, got: 0 }));
    }

    #[test]
    fn two_numbers_follow_the_cauchy_law() {
        // One degree of freedom: the 0.975 quantile is tan(0.475π) = 12.706.
        let interval = Summary::of(&[0.0, 2.0]).unwrap().interval(0.95).unwrap();
        let half = (0.475 * std::f64::consts::PI).tan();
        assert!((interval.high - 1.0 - half).abs() < 1e-12);
        assert!((interval.low - 1.0 + half).abs() < 1e-12);
        assert_eq!((interval.estimate, interval.n), (1.0, 2));
    }

    #[test]
    fn levels_and_numbers_are_checked() {
        let summary = Summary::of(&[0.0, 2.0]).unwrap();
        for level in [0.0, 1.0, 95.0, f64::NAN] {
            assert!(summary.interval(level).is_err());
        }
        assert!(Summary::of(&[f64::NAN]).is_err());
        assert!(Summary::of(&[f64::MAX, f64::MAX]).is_err());
    }

    #[test]
    fn paired_test_uses_differences() {
        // Scattered levels, steady gain: differences 1, 2, 3.
        let test = paired_t_test(&[10.0, 50.0, 90.0], &[11.0, 52.0, 93.0], 0.95).unwrap();
        // Two degrees of freedom: P(|T| > t) = 1 − t/√(t² + 2), t = 2√3.
        let t = 2.0 * 3.0_f64.sqrt();
        assert!((test.p_value - (1.0 - t / (t * t + 2.0).sqrt())).abs() < 1e-14);
        assert_eq!((test.difference.estimate, test.difference.n), (2.0, 3));
        let same = [1.0, 2.0];
        assert_eq!(paired_t_test(&same, &same, 0.95).unwrap().p_value, 1.0);
        assert_eq!(paired_t_test(&same, &[2.0, 3.0], 0.95).unwrap().p_value, 0.0);
        assert!(paired_t_test(&same, &[1.0], 0.95).is_err());
    }

    #[test]
    fn holm_adjusts_p_values() {
        assert_eq!(holm(&[]), Ok(vec![]));
        assert_eq!(holm(&[0.5]), Ok(vec![0.5]));
        assert_eq!(holm(&[0.5, 0.75]), Ok(vec![1.0, 1.0]));
        assert_eq!(holm(&[0.25, 0.25, 0.0]), Ok(vec![0.5, 0.5, 0.0]));
        for bad in [-0.1, 1.1, f64::NAN] {
            assert!(holm(&[0.5, bad]).is_err());
        }
    }
}
