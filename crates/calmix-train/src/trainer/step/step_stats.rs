//! The metrics of a step over all its groups, which are summed together with the gradient.

use calmix_core::matrix::Matrix;
use calmix_core::method::Method;
use calmix_core::method::feedback::{Feedback, Total};
use calmix_core::plan::StepPlan;
use calmix_data::error::DataError;
use calmix_metrics::margins::{EasyHard, Margins};
use calmix_metrics::pseudo_labels::PseudoSums;
use serde::{Deserialize, Serialize};

use super::exchange::GroupRows;
use super::visits::BatchVisits;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::layout::ParallelLayout;

/// The function that returns the class against which the pseudo-label of a sample is evaluated: `None` if it is unknown, or the
/// sample is also trained on with its label.
pub(crate) type TrueClass<'a> = &'a (dyn Fn(u64) -> Result<Option<u32>, DataError> + 'a);

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StepStats {
    pub(crate) feedback: Feedback,
    pub(crate) pseudo: PseudoSums,
    pub(crate) margin: Option<Margins>,
    pub(crate) mixes: u64,
}

/// The sums for a group's metrics: four mean margins, the number of mixtures, and the quality of its pseudo-labels.
#[derive(Debug, Clone, PartialEq, Default)]
struct GroupSums {
    margins: [Total; 4],
    mixes: f32,
    pseudo: PseudoSums,
}

impl GroupSums {
    const WIDTH: usize = 9 + PseudoSums::WIDTH;

    fn of(
        plan: &StepPlan,
        rows: &GroupRows<'_>,
        classes: usize,
        truth: TrueClass<'_>,
    ) -> Result<Self, DataError> {
        let total = |value: Option<f64>| value.map(Total::one).unwrap_or_default();
        let margins = plan.difficulty.as_ref().map(Margins::of).map(|Margins { labelled, unlabelled }| {
            [labelled.easy, labelled.hard, unlabelled.easy, unlabelled.hard].map(total)
        });
        let truth = rows.unlabelled.ids.iter().map(|&id| truth(id)).collect::<Result<Vec<_>, _>>()?;
        let logits = Matrix::new(&rows.unlabelled.logits, truth.len(), classes).ok();
        Ok(Self {
            margins: margins.unwrap_or_default(),
            mixes: plan.mixes.len() as f32,
            pseudo: logits.map(|logits| PseudoSums::of(plan, logits, &truth)).unwrap_or_default(),
        })
    }

    fn numbers(&self) -> Vec<f32> {
        let pseudo = self.pseudo.numbers().into_iter().map(|number| number as f32);
        self.margins.into_iter().flat_map(Total::to_array).chain([self.mixes]).chain(pseudo).collect()
    }
}

/// Returns the tally of each micro-batch of this process. Sums over a whole group are in the tally of its first micro-batch.
pub(crate) fn tallies(
    layout: &ParallelLayout,
    method: &Method,
    visits: &BatchVisits,
    (plans, groups): (&[StepPlan], &[GroupRows<'_>]),
    classes: usize,
    truth: TrueClass<'_>,
) -> Result<Vec<Vec<f32>>, DataError> {
    let mut tallies = Vec::new();
    for (membership, (plan, rows)) in layout.memberships().iter().zip(plans.iter().zip(groups)) {
        for (micro_batch, local) in membership.micro_batches().zip(membership.local.clone()) {
            let selected = visits.micro_batches.get(local).map(|visit| visit.selected.clone());
            let selected = selected.unwrap_or_default();
            let tally = if micro_batch == 0 {
                let feedback = Feedback { selected, ..plan.feedback.clone() };
                [feedback.to_vec(), GroupSums::of(plan, rows, classes, truth)?.numbers()].concat()
            } else {
                let mut tally = Feedback { selected, ..Feedback::default() }.to_vec();
                tally.resize(tally_width(method, classes), 0.0);
                tally
            };
            tallies.push(tally);
        }
    }
    Ok(tallies)
}

/// Returns the number of values in a tally.
pub(crate) fn tally_width(method: &Method, classes: usize) -> usize {
    Feedback::width(method, classes) + GroupSums::WIDTH
}

impl StepStats {
    /// Computes the metrics from the sum of all tallies.
    pub(crate) fn read(sum: &[f32]) -> Result<Self, TrainError> {
        let unreadable = || TrainError::UnreadableMessage(None);
        let (feedback, rest) =
            sum.split_at_checked(sum.len().wrapping_sub(GroupSums::WIDTH)).ok_or_else(unreadable)?;
        let (rest, pseudo) = rest.split_at_checked(9).ok_or_else(unreadable)?;
        let (&[le, lh, ue, uh], &[mixes]) = rest.as_chunks::<2>() else { return Err(unreadable()) };
        let mean = |pair: [f32; 2]| Total::from(pair).mean();
        let half = |easy, hard| EasyHard { easy: mean(easy), hard: mean(hard) };
        let margin = Margins { labelled: half(le, lh), unlabelled: half(ue, uh) };
        let known = |half: EasyHard| half.easy.is_some() || half.hard.is_some();
        Ok(Self {
            feedback: Feedback::from_slice(feedback).ok_or_else(unreadable)?,
            pseudo: {
                let mut sums = PseudoSums::default();
                sums.add_numbers(&pseudo.iter().map(|&number| f64::from(number)).collect::<Vec<_>>());
                sums
            },
            margin: Some(margin).filter(|margin| known(margin.labelled) || known(margin.unlabelled)),
            mixes: mixes as u64,
        })
    }
}

/// Sums over the steps since the last step event. A checkpoint contains them, so that a resumed run writes the same event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogWindow {
    pub(crate) pseudo: PseudoSums,
    /// The number of steps that were skipped because the scaled gradient overflowed in f16.
    pub(crate) overflows: u64,
}

impl LogWindow {
    /// Adds a step; `updated` tells whether its weights were updated.
    pub(crate) fn add(&mut self, stats: &StepStats, updated: bool) {
        self.pseudo.add_numbers(&stats.pseudo.numbers());
        self.overflows += u64::from(!updated);
    }
}

#[cfg(test)]
mod tests {
    use calmix_core::pseudo::PseudoLabels;

    use super::*;

    /// One row of weight one, with a pseudo-label that is wrong or right.
    fn evaluated(wrong: bool) -> PseudoSums {
        let pseudo = PseudoLabels::new(vec![0], vec![1.0]);
        let plan = StepPlan { pseudo, ..StepPlan::default() };
        PseudoSums::of(&plan, Matrix::new(&[1.0, 0.0], 1, 2).unwrap(), &[Some(u32::from(wrong))])
    }

    #[test]
    fn metrics_are_means_over_the_groups_that_have_them() {
        let group = |wrong: Option<bool>, easy: Option<f64>, mixes| GroupSums {
            pseudo: wrong.map(evaluated).unwrap_or_default(),
            margins: [
                easy.map(Total::one).unwrap_or_default(),
                Total::default(),
                Total::default(),
                Total::default(),
            ],
            mixes,
        };
        let feedback = Feedback { selected: vec![1.0, -1.0], ..Feedback::default() };
        let tally = |sums: GroupSums| [feedback.to_vec(), sums.numbers()].concat();
        let (a, b) = (tally(group(Some(true), Some(2.0), 3.0)), tally(group(Some(false), Some(4.0), 5.0)));
        assert_eq!(a.len(), feedback.to_vec().len() + GroupSums::WIDTH);
        let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let stats = StepStats::read(&sum).unwrap();
        assert_eq!(stats.feedback.selected, [2.0, -2.0]);
        assert_eq!((stats.pseudo.impurity(), stats.mixes), (Some(0.5), 8));
        assert_eq!(stats.pseudo.metrics().map(|metrics| metrics.samples), Some(2));
        assert_eq!(stats.margin.unwrap().labelled, EasyHard { easy: Some(3.0), hard: None });
        let none = StepStats::read(&tally(group(None, None, 0.0))).unwrap();
        assert_eq!((none.pseudo.impurity(), none.pseudo.metrics(), none.margin), (None, None, None));
        assert!(StepStats::read(&sum[..3]).is_err());
    }
}
