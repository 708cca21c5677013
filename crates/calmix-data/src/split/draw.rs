//! Which samples keep their labels.

use std::ops::Range;

use calmix_core::rng::Domain;
use serde::{Deserialize, Serialize};

use super::held_groups::{DrawnLabel, held_groups};
use super::plan::{Rule, SplitPlan};
use super::quota::{self, Purpose, class_key};
use crate::dataset::Dataset;
use crate::error::DataError;

/// A class that has fewer labels than the rule wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shortfall {
    pub class: String,
    /// Labels that the rule wanted from it.
    pub wanted: u64,
    /// Labels that it had; all of them are used.
    pub given: u64,
}

/// Where labelled samples may come from.
pub(super) enum Candidates<'a> {
    /// Every sample with a label in these ranges, ascending.
    Ranges(&'a [Range<u64>]),
    /// These samples, ascending; each has a label.
    Ids(&'a [u64]),
}

/// Ids that were drawn, ascending, and classes with fewer labels than wanted.
pub(super) struct Drawn {
    pub(super) labelled: Vec<u64>,
    pub(super) validation: Vec<u64>,
    pub(super) short: Vec<Shortfall>,
}

/// The samples of one class that are still to come, as ranks within the class.
#[derive(Default)]
struct Chosen {
    // Descending, so the next one is last; with each, its place in the draw.
    ranks: Vec<(u64, usize)>,
    seen: u64,
}

/// Draws class by class in two passes over the candidates: one counts, one collects. Memory is for what is
/// drawn only, independent of the size of the dataset.
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
            labels.push(DrawnLabel { id, class: label, place });
        }
        class.seen += 1;
    })?;
    let validation: Vec<u64> = if dataset.has_groups() {
        held_groups(dataset, plan, &labels)?
    } else {
        let held = quota::held_out(plan.validation, plan.seed, classes, &given);
        let is_held = |label: &&DrawnLabel| (label.place as u64) < held[label.class as usize];
        labels.iter().filter(is_held).map(|label| label.id).collect()
    };
    let is_kept = |id: &u64| validation.binary_search(id).is_err();
    let labelled: Vec<u64> = labels.iter().map(|label| label.id).filter(is_kept).collect();
    if labelled.is_empty() {
        let problem = format!("no sample of {} has a label", plan.labelled.join(", "));
        return Err(DataError::content(dataset.folder(), problem).hint("choose a subset that has labels"));
    }
    Ok(Drawn { labelled, validation, short })
}

impl Candidates<'_> {
    /// Calls `with` for the id and the label of each candidate, ids ascending.
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
