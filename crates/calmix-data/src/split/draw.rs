//! Draws the samples that keep their labels.

use std::ops::Range;

use calmix_core::rng::Domain;
use serde::{Deserialize, Serialize};

use super::held_groups::{DrawnLabel, held_groups};
use super::plan::{Rule, SplitPlan};
use super::quota::{self, Purpose, class_key};
use crate::dataset::Dataset;
use crate::error::DataError;

/// A class with fewer labels than the rule requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shortfall {
    pub class: String,
    /// The number of labels that the rule requests.
    pub wanted: u64,
    /// The number of labels that the class has; all of them are used.
    pub given: u64,
}

/// The candidates for labelled samples.
pub(super) enum Candidates<'a> {
    /// All labelled samples in these ranges, which ascend.
    Ranges(&'a [Range<u64>]),
    /// These samples in ascending order; each has a label.
    Ids(&'a [u64]),
}

/// The drawn ids in ascending order, and the classes with too few labels.
pub(super) struct Drawn {
    pub(super) labelled: Vec<u64>,
    pub(super) validation: Vec<u64>,
    pub(super) short: Vec<Shortfall>,
}

/// The samples of one class still to be collected, as ranks within the class.
#[derive(Default)]
struct Chosen {
    // In descending order, so the next one is last; each with its position in the draw.
    ranks: Vec<(u64, usize)>,
    seen: u64,
}

/// Draws class by class in two passes over the candidates: the first counts, the second collects. Memory is proportional to
/// the number of drawn samples, independent of the size of the dataset.
pub(super) fn draw(dataset: &Dataset, plan: &SplitPlan, from: &Candidates<'_>) -> Result<Drawn, DataError> {
    let classes = dataset.classes();
    let mut available = vec![0_u64; classes.len()];
    from.visit(dataset, |_, label| {
        if let Some(count) = available.get_mut(label as usize) {
            *count += 1;
        }
    })?;
    let rule = if matches!(from, Candidates::Ids(_)) { Rule::Given } else { plan.rule };
    let wanted = quota::wanted(rule, plan.seed, classes, &available);
    let given: Vec<u64> =
        wanted.iter().zip(&available).map(|(wanted, available)| *wanted.min(available)).collect();
    let short = classes.iter().zip(wanted.iter().zip(&given)).filter(|(_, (wanted, given))| given < wanted);
    let short =
        short.map(|(class, (&wanted, &given))| Shortfall { class: class.clone(), wanted, given }).collect();

    let mut chosen: Vec<Chosen> = Vec::with_capacity(classes.len());
    for ((name, available), &given) in classes.iter().zip(&available).zip(&given) {
        let mut stream = plan.seed.stream(Domain::Split, Purpose::Samples as u64, class_key(name));
        let ranks = stream.draw_without_replacement(*available, given as usize);
        let mut ranks: Vec<(u64, usize)> = ranks.into_iter().zip(0..).collect();
        ranks.sort_unstable_by(|a, b| b.cmp(a));
        chosen.push(Chosen { ranks, seen: 0 });
    }
    let mut labels = Vec::new();
    from.visit(dataset, |id, label| {
        let Some(class) = chosen.get_mut(label as usize) else { return };
        if let Some((_, place)) = class.ranks.pop_if(|(rank, _)| *rank == class.seen) {
            labels.push(DrawnLabel { id, class: label, place, may_be_held_out: true });
        }
        class.seen += 1;
    })?;
    if dataset.has_drawn() {
        for label in &mut labels {
            label.may_be_held_out = dataset.drawn(label.id)?.may_be_held_out();
        }
    }
    let validation: Vec<u64> = if dataset.has_groups() {
        held_groups(dataset, plan, &labels)?
    } else {
        held_labels(plan, classes, &labels)
    };
    let is_kept = |id: &u64| validation.binary_search(id).is_err();
    let labelled: Vec<u64> = labels.iter().map(|label| label.id).filter(is_kept).collect();
    if labelled.is_empty() {
        let problem = format!("no sample of {} has a label", plan.labelled.join(", "));
        return Err(DataError::content(dataset.folder(), problem).hint("choose a subset that has labels"));
    }
    Ok(Drawn { labelled, validation, short })
}

/// Selects the labels to hold out, in ascending order of ids. A class gives its first labels in the order of the draw, without
/// chosen ones: those are not like the samples that the guarantees are for.
fn held_labels(plan: &SplitPlan, classes: &[String], labels: &[DrawnLabel]) -> Vec<u64> {
    let mut places = vec![Vec::new(); classes.len()];
    for label in labels.iter().filter(|label| label.may_be_held_out) {
        places[label.class as usize].push(label.place);
    }
    let counts: Vec<u64> = places.iter().map(|places| places.len() as u64).collect();
    let wanted = quota::held_out(plan.validation, plan.seed, classes, &counts);
    for (places, wanted) in places.iter_mut().zip(wanted) {
        places.sort_unstable();
        places.truncate(wanted as usize);
    }
    let is_held = |label: &&DrawnLabel| places[label.class as usize].binary_search(&label.place).is_ok();
    labels.iter().filter(is_held).map(|label| label.id).collect()
}

impl Candidates<'_> {
    /// Calls `with` for the id and label of each candidate, in ascending order of ids.
    fn visit(&self, dataset: &Dataset, mut with: impl FnMut(u64, u32)) -> Result<(), DataError> {
        match self {
            Self::Ranges(ranges) => {
                for record in ranges.iter().flat_map(|range| dataset.records(range.clone())) {
                    let (id, record) = record?;
                    if let Some(label) = record.class() {
                        with(id, label);
                    }
                }
            }
            Self::Ids(ids) => {
                for &id in *ids {
                    if let Some(label) = dataset.label(id)? {
                        with(id, label);
                    }
                }
            }
        }
        Ok(())
    }
}
