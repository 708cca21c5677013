//! The quality of pseudo-labels, if the true classes of unlabelled samples are known, as in benchmarks.

use calmix_core::margin::margin;
use calmix_core::matrix::Matrix;
use calmix_core::mixup::Row;
use calmix_core::plan::StepPlan;
use calmix_core::softmax::confidence;
use serde::{Deserialize, Serialize};

use crate::measure::{BinTotals, ReliabilityBin, confidence_gap, ece, mean_confidence};

/// The error and calibration of pseudo-labels, over the unlabelled samples whose class the dataset has and that are not also
/// trained on with their label. Every sample has the same weight, whatever its weight in the loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PseudoLabelMetrics {
    /// The number of pseudo-labels that were evaluated.
    pub samples: u64,
    /// The share of them that is wrong.
    pub error: f64,
    /// Their mean confidence.
    pub mean_confidence: f64,
    /// Mean confidence − accuracy: positive if the pseudo-labels are over-confident.
    pub confidence_gap: f64,
    /// Their expected calibration error, 15 bins of equal width.
    pub ece_15: f64,
}

/// The share of wrong pseudo-labels among the samples of the mixup; `None` if there is nothing to evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpurityOf {
    /// Among UE, the easy unlabelled samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub easy: Option<f64>,
    /// Among UH, the hard unlabelled samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<f64>,
    /// Among the mixtures with a pseudo-label that can be evaluated: the share with at least one wrong pseudo-label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixtures: Option<f64>,
}

/// How well margins tell right pseudo-labels from wrong ones: the probability that a right one has the larger margin than a
/// wrong one of the same batch, which is the area under the ROC curve (AUROC). Equal margins count half.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarginAuroc {
    /// By APM, the margin averaged over all visits.
    pub average: f64,
    /// By the margin of this visit alone.
    pub current: f64,
}

impl PseudoLabelMetrics {
    /// Computes the metrics from 15 bins of equal width; `None` if all are empty.
    pub fn of(bins: &[ReliabilityBin]) -> Option<Self> {
        let samples = bins.iter().map(|bin| bin.count as u64).sum();
        let mean_confidence = mean_confidence(bins);
        let confidence_gap = confidence_gap(bins);
        let right: f64 = bins.iter().map(|bin| bin.count as f64 * bin.accuracy).sum();
        (samples > 0).then(|| Self {
            samples,
            // `right` is a count up to the rounding of the means of the bins.
            error: (samples as f64 - right.round()) / samples as f64,
            mean_confidence,
            confidence_gap,
            ece_15: ece(bins),
        })
    }
}

/// Sums over the unlabelled rows whose class is known and that are not also labelled samples.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PseudoSums {
    /// All rows, by weight.
    weight: WrongShare,
    /// Rows of UE.
    easy: WrongShare,
    /// Rows of UH.
    hard: WrongShare,
    /// Mixtures with an evaluated pseudo-label; a mixture is wrong if any of its pseudo-labels is.
    mixtures: WrongShare,
    /// Pairs of a right and a wrong row of one batch.
    #[serde(default)]
    pairs: RankedPairs,
    /// The numbers of [`BinTotals`]; empty before the first row.
    bins: Vec<f64>,
}

/// A wrong weight and the total weight.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrongShare {
    wrong: f64,
    all: f64,
}

impl WrongShare {
    fn add(&mut self, amount: f64, wrong: bool) {
        self.all += amount;
        self.wrong += if wrong { amount } else { 0.0 };
    }

    fn share(self) -> Option<f64> {
        (self.all > 0.0).then(|| self.wrong / self.all)
    }
}

/// Pairs of a right and a wrong pseudo-label of one batch, and how many of them each margin puts in the right order.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RankedPairs {
    all: f64,
    by_average: f64,
    by_current: f64,
}

impl RankedPairs {
    /// Counts the pairs among rows, each with its averaged margin, its current one and whether its label is wrong.
    fn of(rows: &[(f64, f64, bool)]) -> Self {
        let margins = |margin: fn(&(f64, f64, bool)) -> f64, wrong: bool| {
            rows.iter().filter(|row| row.2 == wrong).map(margin).collect::<Vec<f64>>()
        };
        let in_order = |margin| {
            let mut right = margins(margin, false);
            right.sort_by(f64::total_cmp);
            let above = |wrong: f64| {
                let not_above = right.partition_point(|&right| right <= wrong);
                let below = right.partition_point(|&right| right < wrong);
                (right.len() - not_above) as f64 + 0.5 * (not_above - below) as f64
            };
            margins(margin, true).into_iter().map(above).sum()
        };
        let wrong = rows.iter().filter(|row| row.2).count();
        Self {
            all: (wrong * (rows.len() - wrong)) as f64,
            by_average: in_order(|row| row.0),
            by_current: in_order(|row| row.1),
        }
    }
}

impl PseudoSums {
    /// The number of values before the bins in the list form.
    const SUMS: usize = 11;
    /// The number of values in the list form.
    pub const WIDTH: usize = Self::SUMS + BinTotals::WIDTH;

    /// Computes the sums of a group's plan from the logits of its unlabelled rows; `truth` has the class of each row that is to
    /// be evaluated.
    pub fn of(plan: &StepPlan, logits: Matrix<'_>, truth: &[Option<u32>]) -> Self {
        let labels = &plan.pseudo.labels;
        let wrong = |row: usize| Some(*labels.get(row)? != (*truth.get(row)?)?);
        let (mut sums, mut bins) = (Self::default(), BinTotals::default());
        for (row, (logits, &weight)) in logits.iter().zip(&plan.pseudo.weights).enumerate() {
            if let Some(wrong) = wrong(row) {
                sums.weight.add(weight.into(), wrong);
                // Every base algorithm labels a row with its most likely class.
                bins.add(confidence(logits).into(), !wrong);
            }
        }
        sums.bins = bins.numbers();
        if let Some(difficulty) = &plan.difficulty {
            let halves = &difficulty.unlabelled;
            for (share, rows) in [(&mut sums.easy, &halves.easy), (&mut sums.hard, &halves.hard)] {
                rows.iter().filter_map(|&row| wrong(row)).for_each(|wrong| share.add(1.0, wrong));
            }
            let margins = logits.iter().zip(labels).zip(&difficulty.apm).enumerate();
            let rows = margins.filter_map(|(row, ((logits, &label), &average))| {
                Some((average, margin(logits, label as usize), wrong(row)?))
            });
            sums.pairs = RankedPairs::of(&rows.collect::<Vec<_>>());
        }
        for mix in &plan.mixes {
            let evaluated = [mix.a, mix.b].into_iter().filter_map(|row| match row {
                Row::Unlabelled(row) => wrong(row),
                Row::Labelled(_) => None,
            });
            if let Some(wrong) = evaluated.reduce(|a, b| a || b) {
                sums.mixtures.add(1.0, wrong);
            }
        }
        sums
    }

    /// Writes the sums as a list of numbers to be added up.
    pub fn numbers(&self) -> Vec<f64> {
        let shares = [self.weight, self.easy, self.hard, self.mixtures];
        let mut numbers: Vec<f64> = shares.iter().flat_map(|share| [share.wrong, share.all]).collect();
        numbers.extend([self.pairs.all, self.pairs.by_average, self.pairs.by_current]);
        numbers.extend(&self.bins);
        numbers.resize(Self::WIDTH, 0.0);
        numbers
    }

    /// Adds a list that [`numbers`](Self::numbers) made.
    pub fn add_numbers(&mut self, numbers: &[f64]) {
        let (sums, bins) = numbers.split_at(numbers.len().min(Self::SUMS));
        let Self { weight, easy, hard, mixtures, pairs, .. } = self;
        let to =
            [weight, easy, hard, mixtures].into_iter().flat_map(|share| [&mut share.wrong, &mut share.all]);
        let to = to.chain([&mut pairs.all, &mut pairs.by_average, &mut pairs.by_current]);
        to.zip(sums).for_each(|(sum, more)| *sum += more);
        self.bins.resize(BinTotals::WIDTH, 0.0);
        self.bins.iter_mut().zip(bins).for_each(|(sum, more)| *sum += more);
    }

    /// Returns the share of wrong pseudo-labels by weight; `None` if no evaluated row has a weight.
    pub fn impurity(&self) -> Option<f64> {
        self.weight.share()
    }

    /// Returns the share of wrong pseudo-labels among the samples of the mixup.
    pub fn impurity_of(&self) -> Option<ImpurityOf> {
        let [easy, hard, mixtures] = [self.easy, self.hard, self.mixtures].map(WrongShare::share);
        let is_evaluated = easy.or(hard).or(mixtures).is_some();
        is_evaluated.then_some(ImpurityOf { easy, hard, mixtures })
    }

    /// Returns how well margins find wrong pseudo-labels; `None` without margins, or without a right and a wrong label.
    pub fn margin_auroc(&self) -> Option<MarginAuroc> {
        let RankedPairs { all, by_average, by_current } = self.pairs;
        (all > 0.0).then(|| MarginAuroc { average: by_average / all, current: by_current / all })
    }

    /// Returns the metrics of all pseudo-labels.
    pub fn metrics(&self) -> Option<PseudoLabelMetrics> {
        let mut totals = BinTotals::default();
        totals.add_numbers(&self.bins);
        PseudoLabelMetrics::of(&totals.bins())
    }
}

#[cfg(test)]
mod tests {
    use calmix_core::mixup::Mix;
    use calmix_core::mixup::split::Halves;
    use calmix_core::plan::Difficulty;
    use calmix_core::pseudo::PseudoLabels;

    use super::*;

    fn mix(a: Row, b: Row) -> Mix {
        Mix { a, b, lambda: 0.5, class_a: 0, class_b: 0, weight: 1.0 }
    }

    /// Row 2 is of unknown class or a labelled sample: it is in no metric, though its label is wrong.
    #[test]
    fn only_rows_with_a_class_count() {
        let (x, u) = (Row::Labelled, Row::Unlabelled);
        let plan = StepPlan {
            pseudo: PseudoLabels::new(vec![1, 0, 1, 1], vec![1.0, 0.5, 1.0, 0.0]),
            difficulty: Some(Difficulty {
                apm: vec![0.5, 0.5, -9.0, 2.0],
                unlabelled: Halves { easy: vec![0, 2], hard: vec![1, 3] },
                ..Difficulty::default()
            }),
            mixes: vec![mix(x(0), x(1)), mix(x(0), u(0)), mix(x(0), u(2)), mix(u(0), u(1)), mix(u(3), u(2))],
            ..StepPlan::default()
        };
        let three = 3.0_f32.ln();
        let logits = [0.0, three, three, 0.0, 0.0, three, 0.0, three];
        let logits = Matrix::new(&logits, 4, 2).unwrap();
        let sums = PseudoSums::of(&plan, logits, &[Some(1), Some(1), None, Some(1)]);
        assert_eq!(sums.impurity(), Some(0.5 / 1.5));
        // Labelled ones alone and row 2 alone are not evaluated; of the other three one has row 1 in it.
        let shares = ImpurityOf { easy: Some(0.0), hard: Some(0.5), mixtures: Some(1.0 / 3.0) };
        assert_eq!(sums.impurity_of(), Some(shares));
        // Rows 0 and 3 are right, row 1 is wrong: its APM is that of row 0, and its margin is that of both.
        assert_eq!(sums.margin_auroc(), Some(MarginAuroc { average: 1.5 / 2.0, current: 1.0 / 2.0 }));
        let metrics = sums.metrics().unwrap();
        assert_eq!((metrics.samples, metrics.error), (3, 1.0 / 3.0));
        assert!((metrics.confidence_gap - (0.75 - 2.0 / 3.0)).abs() < 1e-7, "{metrics:?}");

        let mut twice = PseudoSums::default();
        assert_eq!((twice.impurity(), twice.impurity_of(), twice.metrics()), (None, None, None));
        assert_eq!(twice.margin_auroc(), None);
        assert_eq!((sums.numbers().len(), twice.numbers().len()), (PseudoSums::WIDTH, PseudoSums::WIDTH));
        twice.add_numbers(&sums.numbers());
        assert_eq!(twice, sums);
        twice.add_numbers(&sums.numbers());
        assert_eq!((twice.impurity(), twice.impurity_of()), (sums.impurity(), Some(shares)));
        assert_eq!(twice.margin_auroc(), sums.margin_auroc());
        assert_eq!(twice.metrics().map(|metrics| metrics.samples), Some(6));
    }

    #[test]
    fn metrics_of_a_few_labels() {
        assert_eq!(PseudoLabelMetrics::of(&BinTotals::default().bins()), None);
        let mut totals = BinTotals::default();
        for (confidence, correct) in [(0.5, true), (0.75, false), (0.75, false), (1.0, true)] {
            totals.add(confidence, correct);
        }
        let metrics = PseudoLabelMetrics::of(&totals.bins()).unwrap();
        assert_eq!((metrics.samples, metrics.error, metrics.mean_confidence), (4, 0.5, 0.75));
        assert_eq!((metrics.confidence_gap, metrics.ece_15), (0.25, (0.5 + 1.5) / 4.0));
    }
}
