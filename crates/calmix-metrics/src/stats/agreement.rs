//! The agreement of two people who labelled the same samples: Cohen's kappa.
//!
//! Kappa is the share of equal labels beyond the share that two people would reach by chance if each kept their own frequencies
//! of classes: 1 for equal labels throughout, 0 for no more than chance.

use crate::checked;
use crate::error::MetricsError;
use crate::metrics::Interval;

/// The two-sided 95% quantile of the normal distribution.
const Z_95: f64 = 1.959_963_984_540_054;

/// The agreement of two people on the samples that both labelled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// The number of samples.
    pub samples: usize,
    /// The number of samples with the same label.
    pub same: usize,
    /// Cohen's kappa; `None` if both used a single class, the same one: chance then explains any agreement.
    pub kappa: Option<f64>,
    /// The asymptotic 95% confidence interval of kappa. `None` without kappa, and if the standard error is zero: that of equal
    /// labels throughout is, however few samples there are.
    pub interval: Option<Interval>,
}

impl Agreement {
    /// Compares the classes that two people gave to the same samples; both lists have the same order, and classes are numbered
    /// from zero.
    ///
    /// The interval uses the standard error of Fleiss, Cohen and Everitt ("Large sample standard errors of kappa and weighted
    /// kappa", 1969, equation 13), cut off at −1 and 1.
    ///
    /// ```
    /// use calmix_metrics::stats::agreement::Agreement;
    ///
    /// let agreement = Agreement::of(&[0, 0, 1, 1, 2, 2], &[0, 0, 1, 1, 2, 1])?;
    /// assert_eq!((agreement.samples, agreement.same), (6, 5));
    /// assert!((agreement.kappa.unwrap() - 0.75).abs() < 1e-12);
    /// # Ok::<(), calmix_metrics::error::MetricsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Without samples, or if the lists have different lengths.
    pub fn of(first: &[u32], second: &[u32]) -> Result<Self, MetricsError> {
        checked::length("labels of the second person", first.len(), second.len())?;
        if first.is_empty() {
            return Err(MetricsError::TooFew { needed: 1, got: 0 });
        }
        let samples = first.len();
        let highest = first.iter().chain(second).copied().max().unwrap_or_default();
        let first_shares = shares(first, highest);
        let second_shares = shares(second, highest);
        let same = first.iter().zip(second).filter(|(a, b)| a == b).count();
        let observed = same as f64 / samples as f64;
        let by_chance: f64 = first_shares.iter().zip(&second_shares).map(|(a, b)| a * b).sum();
        let is_single_class = first_shares.iter().zip(&second_shares).any(|(&a, &b)| a == 1.0 && b == 1.0);
        if is_single_class {
            return Ok(Self { samples, same, kappa: None, interval: None });
        }
        let kappa = (observed - by_chance) / (1.0 - by_chance);
        if same == samples {
            return Ok(Self { samples, same, kappa: Some(kappa), interval: None });
        }
        let mut spread = 0.0;
        for (&a, &b) in first.iter().zip(second) {
            // A pair of labels on the diagonal counts with its own two margins, one off it with the crossed ones.
            let term = if a == b {
                1.0 - (first_shares[a as usize] + second_shares[a as usize]) * (1.0 - kappa)
            } else {
                (1.0 - kappa) * (second_shares[a as usize] + first_shares[b as usize])
            };
            spread += term * term;
        }
        let centre = kappa - by_chance * (1.0 - kappa);
        let variance = spread / samples as f64 - centre * centre;
        // A single sample has none; rounding can make it negative.
        if variance <= 0.0 {
            return Ok(Self { samples, same, kappa: Some(kappa), interval: None });
        }
        let half_width = Z_95 * (variance / samples as f64).sqrt() / (1.0 - by_chance);
        let low = (kappa - half_width).max(-1.0);
        let high = (kappa + half_width).min(1.0);
        Ok(Self { samples, same, kappa: Some(kappa), interval: Some(Interval { low, high }) })
    }
}

/// Returns the share of each class from 0 to `highest`.
fn shares(labels: &[u32], highest: u32) -> Vec<f64> {
    let mut counts = vec![0_u64; highest as usize + 1];
    for &label in labels {
        counts[label as usize] += 1;
    }
    counts.into_iter().map(|count| count as f64 / labels.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the labels of two people from a table of counts: a row per class of the first, a column per class of the second.
    fn labels(table: &[&[usize]]) -> (Vec<u32>, Vec<u32>) {
        let mut first = Vec::new();
        let mut second = Vec::new();
        for (a, row) in (0..).zip(table) {
            for (b, &count) in (0..).zip(*row) {
                first.extend(std::iter::repeat_n(a, count));
                second.extend(std::iter::repeat_n(b, count));
            }
        }
        (first, second)
    }

    /// `sklearn.metrics.cohen_kappa_score`, scikit-learn 1.9.1; the interval is `kappa_low` and `kappa_upp` of
    /// `statsmodels.stats.inter_rater.cohens_kappa`, statsmodels 0.15.0.
    #[test]
    fn kappa_and_interval_of_two_libraries() {
        let rows: [(&[&[usize]], f64, f64, f64); 3] = [
            (&[&[20, 5], &[10, 15]], 0.4, 0.151_092_290_476_661, 0.648_907_709_523_338_9),
            (
                &[&[88, 14, 18], &[10, 40, 10], &[2, 6, 12]],
                0.491_525_423_728_813_6,
                0.391_563_702_053_546_9,
                0.591_487_145_404_08,
            ),
            (
                &[&[1, 3, 0, 0], &[2, 9, 1, 0], &[0, 0, 4, 2], &[0, 1, 0, 17]],
                0.660_377_358_490_566,
                0.477_681_627_691_365_46,
                0.843_073_089_289_766_8,
            ),
        ];
        for (table, kappa, low, high) in rows {
            let (first, second) = labels(table);
            let agreement = Agreement::of(&first, &second).unwrap();
            assert!((agreement.kappa.unwrap() - kappa).abs() < 1e-12, "{agreement:?}");
            let interval = agreement.interval.unwrap();
            assert!((interval.low - low).abs() < 1e-12, "{agreement:?}");
            assert!((interval.high - high).abs() < 1e-12, "{agreement:?}");
            // Who is first makes no difference.
            let turned = Agreement::of(&second, &first).unwrap();
            assert!((turned.interval.unwrap().high - high).abs() < 1e-12, "{turned:?}");
        }
    }

    #[test]
    fn interval_ends_at_minus_one() {
        let (first, second) = labels(&[&[0, 6], &[5, 0]]);
        let agreement = Agreement::of(&first, &second).unwrap();
        // statsmodels has −1.19, below the smallest kappa.
        assert!((agreement.kappa.unwrap() + 0.983_606_557_377_048_9).abs() < 1e-12);
        let interval = agreement.interval.unwrap();
        assert_eq!(interval.low, -1.0);
        assert!((interval.high + 0.773_098_815_899_204_9).abs() < 1e-12);
    }

    #[test]
    fn equal_labels_have_no_interval() {
        let (first, second) = labels(&[&[7, 0], &[0, 5]]);
        let agreement = Agreement::of(&first, &second).unwrap();
        assert_eq!((agreement.kappa, agreement.interval), (Some(1.0), None));
        let single = Agreement::of(&[3; 9], &[3; 9]).unwrap();
        assert_eq!((single.same, single.kappa, single.interval), (9, None, None));
        let one = Agreement::of(&[0], &[1]).unwrap();
        assert_eq!((one.kappa, one.interval), (Some(0.0), None));
        // A single class of one person is chance, too, but the other one disagrees.
        let (first, second) = labels(&[&[40, 1], &[0, 0]]);
        assert_eq!(Agreement::of(&first, &second).unwrap().kappa, Some(0.0));
    }

    #[test]
    fn missing_labels_are_refused() {
        Agreement::of(&[], &[]).unwrap_err();
        Agreement::of(&[0, 1], &[0]).unwrap_err();
    }
}
