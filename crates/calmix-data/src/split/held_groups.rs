//! Holds out whole groups of labels, so that no group is both trained on and held out.

use std::collections::{BTreeMap, HashMap};

use super::plan::{HoldOut, SplitPlan};
use super::quota;
use crate::dataset::Dataset;
use crate::error::DataError;

/// A drawn label.
#[derive(Debug, Clone, Copy)]
pub(super) struct DrawnLabel {
    pub(super) id: u64,
    pub(super) class: u32,
    /// Its position in the random order of its class.
    pub(super) place: usize,
    /// Whether it may be held out: not if it was chosen.
    pub(super) may_be_held_out: bool,
}

/// A group of drawn labels.
#[derive(Debug, Default)]
struct LabelGroup {
    labels: Vec<DrawnLabel>,
    per_class: BTreeMap<u32, u64>,
}

/// Selects the labels to hold out, in ascending order of ids.
///
/// A group counts as a single label of its most frequent class, so the share, minimum and maximum of the plan count groups.
/// Groups are held out in the order in which their class was drawn; if every label forms its own group, the result is the
/// same as without groups. A group stays if holding it out would leave a class with too few labels, or if one of its
/// labels was chosen.
pub(super) fn held_groups(
    dataset: &Dataset,
    plan: &SplitPlan,
    labels: &[DrawnLabel],
) -> Result<Vec<u64>, DataError> {
    if plan.validation == HoldOut::NONE {
        return Ok(Vec::new());
    }
    let classes = dataset.classes();
    let mut of_class: Vec<Vec<LabelGroup>> = classes.iter().map(|_| Vec::new()).collect();
    let mut left = vec![0_u64; classes.len()];
    for group in groups_of(dataset, labels)? {
        for (&class, count) in &group.per_class {
            left[class as usize] += count;
        }
        if !group.labels.iter().all(|label| label.may_be_held_out) {
            continue;
        }
        let most = group.per_class.iter().max_by_key(|&(&class, &count)| (count, std::cmp::Reverse(class)));
        if let Some((&class, _)) = most {
            of_class[class as usize].push(group);
        }
    }
    let counts: Vec<u64> = of_class.iter().map(|groups| groups.len() as u64).collect();
    let wanted = quota::held_out(plan.validation, plan.seed, classes, &counts);
    let (_, keeps) = plan.validation.share_of(counts.iter().sum());
    let mut held = Vec::new();
    let mut count = 0;
    for ((class, groups), wanted) in (0_u32..).zip(&mut of_class).zip(wanted) {
        // By the first label of this class: every group has one.
        let first = |group: &LabelGroup| {
            group.labels.iter().filter(|label| label.class == class).map(|label| label.place).min()
        };
        groups.sort_by_key(first);
        let mut taken = 0;
        for group in groups {
            let leaves_enough = group.per_class.iter().all(|(&class, count)| {
                left[class as usize].checked_sub(*count).is_some_and(|rest| rest >= keeps)
            });
            if taken < wanted && leaves_enough {
                taken += 1;
                for (&class, count) in &group.per_class {
                    left[class as usize] -= count;
                }
                held.extend(group.labels.iter().map(|label| label.id));
            }
        }
        count += taken;
    }
    if plan.validation.refuses(count) {
        return Ok(Vec::new());
    }
    held.sort_unstable();
    Ok(held)
}

/// Groups the labels.
fn groups_of(dataset: &Dataset, labels: &[DrawnLabel]) -> Result<Vec<LabelGroup>, DataError> {
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut groups: Vec<LabelGroup> = Vec::new();
    for &label in labels {
        let next = groups.len();
        let place = match dataset.group(label.id)? {
            Some(group) => *places.entry(group).or_insert(next),
            None => next,
        };
        if place == next {
            groups.push(LabelGroup::default());
        }
        groups[place].labels.push(label);
        *groups[place].per_class.entry(label.class).or_default() += 1;
    }
    Ok(groups)
}
