//! The quality of the pseudo-labels of a step: sums over rows whose class is known, which add up over groups and steps.

use calmix_core::matrix::Matrix;
use calmix_core::mixup::Row;
use calmix_core::plan::StepPlan;
use calmix_core::softmax::confidence;
use serde::{Deserialize, Serialize};

use super::{ImpurityOf, PseudoLabelMetrics};
use crate::measure::BinTotals;

/// Sums over unlabelled rows whose class is known and that are not labelled samples too.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PseudoSums {
    /// All rows, by weight.
    weight: WrongShare,
    /// Rows of UE.
    easy: WrongShare,
    /// Rows of UH.
    hard: WrongShare,
    /// Mixtures with a pseudo-label that is evaluated; wrong is one with at least one wrong pseudo-label.
    mixtures: WrongShare,
    /// The numbers of [`BinTotals`]; empty before the first row.
    bins: Vec<f64>,
}

/// The weight that is wrong, and the total weight.
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

impl PseudoSums {
    /// The number of values in the list form.
    pub const WIDTH: usize = 8 + BinTotals::WIDTH;

    /// Computes the sums of the plan of a group, by the logits of its unlabelled rows; `truth` is the class of each row, if it
    /// is to be evaluated.
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
        numbers.extend(&self.bins);
        numbers.resize(Self::WIDTH, 0.0);
        numbers
    }

    /// Adds such a list.
    pub fn add_numbers(&mut self, numbers: &[f64]) {
        let (shares, bins) = numbers.split_at(numbers.len().min(8));
        let own = [&mut self.weight, &mut self.easy, &mut self.hard, &mut self.mixtures];
        for (own, &[wrong, all]) in own.into_iter().zip(shares.as_chunks().0) {
            own.wrong += wrong;
            own.all += all;
        }
        self.bins.resize(BinTotals::WIDTH, 0.0);
        self.bins.iter_mut().zip(bins).for_each(|(own, more)| *own += more);
    }

    /// The share of wrong pseudo-labels by weight; `None` if nothing that can be evaluated has a weight.
    pub fn impurity(&self) -> Option<f64> {
        self.weight.share()
    }

    /// The share of wrong pseudo-labels among the samples of the mixup.
    pub fn impurity_of(&self) -> Option<ImpurityOf> {
        let [easy, hard, mixtures] = [self.easy, self.hard, self.mixtures].map(WrongShare::share);
        let known = easy.or(hard).or(mixtures).is_some();
        known.then_some(ImpurityOf { easy, hard, mixtures })
    }

    /// The metrics of all pseudo-labels.
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
    fn only_rows_of_known_class_count() {
        let (x, u) = (Row::Labelled, Row::Unlabelled);
        let plan = StepPlan {
            pseudo: PseudoLabels::new(vec![1, 0, 1, 1], vec![1.0, 0.5, 1.0, 0.0]),
            difficulty: Some(Difficulty {
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
        let metrics = sums.metrics().unwrap();
        assert_eq!((metrics.samples, metrics.error), (3, 1.0 / 3.0));
        assert!((metrics.confidence_gap - (0.75 - 2.0 / 3.0)).abs() < 1e-7, "{metrics:?}");

        let mut twice = PseudoSums::default();
        assert_eq!((twice.impurity(), twice.impurity_of(), twice.metrics()), (None, None, None));
        assert_eq!((sums.numbers().len(), twice.numbers().len()), (PseudoSums::WIDTH, PseudoSums::WIDTH));
        twice.add_numbers(&sums.numbers());
        assert_eq!(twice, sums);
        twice.add_numbers(&sums.numbers());
        assert_eq!((twice.impurity(), twice.impurity_of()), (sums.impurity(), Some(shares)));
        assert_eq!(twice.metrics().map(|metrics| metrics.samples), Some(6));
    }
}
