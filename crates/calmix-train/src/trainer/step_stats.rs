//! The figures of a step, over all its groups: they are added up together with the gradient.

use calmix_core::feedback::{Feedback, Total};
use calmix_core::method::Method;
use calmix_core::plan::StepPlan;
use calmix_core::pseudo::PseudoLabels;

use super::error::TrainError;
use super::exchange::GroupRows;
use super::layout::ParallelLayout;
use super::visits::ShardVisits;
use calmix_run::events::{EasyHard, Margins, impurity};

/// The class of a sample, where it is known.
pub(super) type TrueClass<'a> = &'a (dyn Fn(u64) -> Option<u32> + 'a);

/// The figures of a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct StepStats {
    pub(super) feedback: Feedback,
    pub(super) impurity: Option<f64>,
    pub(super) margin: Option<Margins>,
    pub(super) mixes: u64,
}

/// Sums for the figures of a group: impurity, four mean margins, the number of mixtures.
#[derive(Debug, Clone, PartialEq, Default)]
struct GroupSums {
    impurity: Total,
    margins: [Total; 4],
    mixes: f32,
}

impl GroupSums {
    const WIDTH: usize = 11;

    fn of(plan: &StepPlan, rows: &GroupRows<'_>, truth: Option<TrueClass<'_>>) -> Self {
        let PseudoLabels { labels, weights, .. } = &plan.pseudo;
        let truth = truth.map(|truth| rows.unlabelled.ids.iter().map(|&id| truth(id)).collect::<Vec<_>>());
        let total = |value: Option<f64>| value.map(Total::one).unwrap_or_default();
        let margins = plan.difficulty.as_ref().map(Margins::of).map(|Margins { labelled, unlabelled }| {
            [labelled.easy, labelled.hard, unlabelled.easy, unlabelled.hard].map(total)
        });
        Self {
            impurity: total(truth.and_then(|truth| impurity(labels, weights, &truth))),
            margins: margins.unwrap_or_default(),
            mixes: plan.mixes.len() as f32,
        }
    }

    fn numbers(&self) -> Vec<f32> {
        let totals = [self.impurity].into_iter().chain(self.margins);
        totals.flat_map(Total::numbers).chain([self.mixes]).collect()
    }
}

/// The tally of each shard of this process. What belongs to a whole group is in the tally of its first shard.
pub(super) fn tallies(
    layout: &ParallelLayout,
    method: &Method,
    visits: &ShardVisits,
    (plans, groups): (&[StepPlan], &[GroupRows<'_>]),
    classes: usize,
    truth: Option<TrueClass<'_>>,
) -> Vec<Vec<f32>> {
    let mut tallies = Vec::new();
    for (membership, (plan, rows)) in layout.memberships().iter().zip(plans.iter().zip(groups)) {
        for (shard, local) in membership.shards().zip(membership.local.clone()) {
            let selected = visits.shards.get(local).map(|visit| visit.selected.clone());
            let selected = selected.unwrap_or_default();
            let tally = if shard == 0 {
                let feedback = Feedback { selected, ..plan.feedback.clone() };
                [feedback.numbers(), GroupSums::of(plan, rows, truth).numbers()].concat()
            } else {
                let mut tally = Feedback { selected, ..Feedback::default() }.numbers();
                tally.resize(tally_width(method, classes), 0.0);
                tally
            };
            tallies.push(tally);
        }
    }
    tallies
}

/// How many numbers a tally has.
pub(super) fn tally_width(method: &Method, classes: usize) -> usize {
    Feedback::width(method, classes) + GroupSums::WIDTH
}

impl StepStats {
    /// From the sum of all tallies.
    pub(super) fn read(sum: &[f32]) -> Result<Self, TrainError> {
        let unreadable = || TrainError::UnreadableMessage(None);
        let (feedback, rest) =
            sum.split_at_checked(sum.len().wrapping_sub(GroupSums::WIDTH)).ok_or_else(unreadable)?;
        let (&[impurity, le, lh, ue, uh], &[mixes]) = rest.as_chunks::<2>() else { return Err(unreadable()) };
        let mean = |pair: [f32; 2]| Total::from(pair).mean();
        let half = |easy, hard| EasyHard { easy: mean(easy), hard: mean(hard) };
        let margin = Margins { labelled: half(le, lh), unlabelled: half(ue, uh) };
        let known = |half: EasyHard| half.easy.is_some() || half.hard.is_some();
        Ok(Self {
            feedback: Feedback::read(feedback).ok_or_else(unreadable)?,
            impurity: mean(impurity),
            margin: Some(margin).filter(|margin| known(margin.labelled) || known(margin.unlabelled)),
            mixes: mixes as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_means_over_the_groups_that_have_them() {
        let group = |impurity: Option<f64>, easy: Option<f64>, mixes| GroupSums {
            impurity: impurity.map(Total::one).unwrap_or_default(),
            margins: [
                easy.map(Total::one).unwrap_or_default(),
                Total::default(),
                Total::default(),
                Total::default(),
            ],
            mixes,
        };
        let feedback = Feedback { selected: vec![1.0, -1.0], ..Feedback::default() };
        let tally = |sums: GroupSums| [feedback.numbers(), sums.numbers()].concat();
        let (a, b) = (tally(group(Some(0.5), Some(2.0), 3.0)), tally(group(None, Some(4.0), 5.0)));
        assert_eq!(a.len(), feedback.numbers().len() + GroupSums::WIDTH);
        let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let stats = StepStats::read(&sum).unwrap();
        assert_eq!(stats.feedback.selected, [2.0, -2.0]);
        assert_eq!((stats.impurity, stats.mixes), (Some(0.5), 8));
        assert_eq!(stats.margin.unwrap().labelled, EasyHard { easy: Some(3.0), hard: None });
        let none = StepStats::read(&tally(group(None, None, 0.0))).unwrap();
        assert_eq!((none.impurity, none.margin), (None, None));
        assert!(StepStats::read(&sum[..3]).is_err());
    }
}
