//! The split of a batch into an easy and a hard half (Algorithm 1, lines 3–7).

use serde::{Deserialize, Serialize};

use crate::observation::Row;
use crate::settings::limit::{SHARE, UNIT_INTERVAL};
use crate::settings::rule;

rule! {
    /// How a batch is split into easy and hard samples.
    Split {
        /// The lower half by rank is hard, as in the released code.
        ///
        /// The lower ⌊n/2⌋ are hard, the rest easy. Equal values are ordered by sample id and then by row, so halves
        /// are balanced and reproducible even with ties.
        Rank = "rank",
        /// Samples below the batch's median are hard, as Algorithm 1 is written.
        ///
        /// Easy if AUM(x, y) ≥ τ_L, hard if AUM(x, y) < τ_L. The median of an even number of values is the mean of the
        /// middle two. With many ties the hard half may be small or empty.
        Median = "median",
        /// Samples below a running quantile are hard.
        ///
        /// Not in the paper. The bias-corrected quantile replaces the batch's own median, so a batch that has only easy
        /// samples is treated as easy.
        Running { quantile: f64, momentum: f64 } = "running",
    }
    SplitKeys {
        split: SplitWord = Rank;
        /// The quantile that is followed; 0.5 is the median.
        quantile: f64 = 0.5, SHARE;
        /// The momentum of the running quantile.
        momentum: f64 = 0.99, UNIT_INTERVAL;
    }
}

/// Rows of a batch by difficulty, each list ascending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Halves {
    /// Rows at or above the threshold.
    pub easy: Vec<usize>,
    /// Rows below the threshold.
    pub hard: Vec<usize>,
}

/// A running quantile over batches, bias-corrected.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunningQuantile {
    /// The running quantile; zero before the first step.
    pub value: f64,
    /// The number of steps averaged so far, for the bias correction.
    pub steps: u32,
}

impl Halves {
    /// Returns the easy and the hard rows, converted by `of` to rows of the labelled or unlabelled batch.
    pub fn rows(&self, of: fn(usize) -> Row) -> [Vec<Row>; 2] {
        [&self.easy, &self.hard].map(|half| half.iter().copied().map(of).collect())
    }
}

impl Split {
    /// Splits rows by their values (AUM or APM, one per row) and sample ids. A running quantile is used as earlier steps
    /// left it; before the first step, the batch's own quantile takes its place.
    pub fn halves(self, values: &[f64], ids: &[u64], running: &RunningQuantile) -> Halves {
        match self {
            Self::Rank => by_rank(values, ids),
            Self::Median => by_threshold(values, quantile(values, 0.5)),
            Self::Running { quantile: q, .. } => {
                let threshold = if running.steps == 0 { quantile(values, q) } else { running.value };
                by_threshold(values, threshold)
            }
        }
    }

    /// Returns the quantile of a batch with which the running quantile is updated; `None` for other rules, or without values.
    pub(crate) fn batch_quantile(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Running { quantile: q, .. } if !values.is_empty() => Some(quantile(values, q)),
            _ => None,
        }
    }
}

impl RunningQuantile {
    /// Moves towards the mean of the quantiles of a step's groups; `None` if no group had rows.
    pub(crate) fn update(&mut self, quantile: Option<f64>, momentum: f64) {
        if let Some(quantile) = quantile {
            let rule = crate::margin::Averaging::Exponential { rho: momentum };
            self.value += rule.step_size(self.steps) * (quantile - self.value);
            self.steps = self.steps.saturating_add(1);
        }
    }
}

fn by_rank(values: &[f64], ids: &[u64]) -> Halves {
    let id = |row: usize| ids.get(row).copied().unwrap_or(0);
    let mut rows: Vec<usize> = (0..values.len()).collect();
    rows.sort_by(|&a, &b| values[a].total_cmp(&values[b]).then(id(a).cmp(&id(b))));
    let mut easy = rows.split_off(values.len() / 2);
    easy.sort_unstable();
    rows.sort_unstable();
    Halves { easy, hard: rows }
}

fn by_threshold(values: &[f64], threshold: f64) -> Halves {
    let (easy, hard) = (0..values.len()).partition(|&row| values[row] >= threshold);
    Halves { easy, hard }
}

/// Returns the `q`-quantile, interpolated linearly between order statistics (NumPy's default); zero without values.
fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = q.clamp(0.0, 1.0) * sorted.len().saturating_sub(1) as f64;
    let (low, share) = (place as usize, place.fract());
    match (sorted.get(low), sorted.get(low + 1)) {
        (Some(&a), Some(&b)) if share > 0.0 => a * (1.0 - share) + b * share,
        (Some(&a), _) => a,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves(split: Split, values: &[f64], ids: &[u64]) -> Halves {
        split.halves(values, ids, &RunningQuantile::default())
    }

    #[test]
    fn rank_gives_the_extra_row_to_the_easy_half_and_breaks_ties_by_id() {
        let by_value = halves(Split::Rank, &[3.0, 1.0, 2.0], &[0, 1, 2]);
        assert_eq!(by_value, Halves { easy: vec![0, 2], hard: vec![1] });
        let all_equal = halves(Split::Rank, &[1.0; 4], &[9, 2, 5, 2]);
        assert_eq!(all_equal, Halves { easy: vec![0, 2], hard: vec![1, 3] });
    }

    #[test]
    fn median_follows_the_paper_to_the_letter() {
        let even = halves(Split::Median, &[4.0, 1.0, 2.0, 3.0], &[0; 4]);
        assert_eq!(even, Halves { easy: vec![0, 3], hard: vec![1, 2] });
        let tied = halves(Split::Median, &[1.0; 3], &[0; 3]);
        assert_eq!(tied, Halves { easy: vec![0, 1, 2], hard: vec![] });
    }

    #[test]
    fn running_threshold_lags_by_one_step() {
        let split = Split::Running { quantile: 0.5, momentum: 0.9 };
        let mut running = RunningQuantile::default();
        let first = split.halves(&[0.0, 1.0, 2.0], &[0, 1, 2], &running);
        assert_eq!(first, Halves { easy: vec![1, 2], hard: vec![0] }, "by the batch's own median");
        running.update(split.batch_quantile(&[0.0, 1.0, 2.0]), 0.9);
        assert_eq!(running.value, 1.0, "the first step sets the value");
        let easy = split.halves(&[8.0, 9.0], &[0, 1], &running);
        assert_eq!(easy, Halves { easy: vec![0, 1], hard: vec![] });
        running.update(split.batch_quantile(&[8.0, 9.0]), 0.9);
        // Weights of a bias-corrected average with ρ = 0.9 after two steps: 9/19 and 10/19.
        assert!((running.value - (9.0 * 1.0 + 10.0 * 8.5) / 19.0).abs() < 1e-12);
        running.update(split.batch_quantile(&[]), 0.9);
        assert_eq!(running.steps, 2, "no rows, no update");
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.25), 1.75);
        assert_eq!((quantile(&[], 0.5), quantile(&[7.0], 0.9), quantile(&[1.0, 2.0], 1.0)), (0.0, 7.0, 2.0));
    }
}
