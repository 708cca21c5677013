//! What is told of the plans of a step: the mean over its groups, whoever runs them.

use calmix_core::plan::StepPlan;
use calmix_core::pseudo::PseudoLabels;
use serde::{Deserialize, Serialize};

use super::error::TrainError;
use super::groups::Group;
use super::team::Team;
use super::together::garbled;
use crate::events::{EasyHard, Margins, impurity, utilisation};

/// The class of a sample, where it is known.
pub(super) type Truth<'a> = &'a (dyn Fn(u64) -> Option<u32> + 'a);

/// What is told of a plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) utilisation: Option<f64>,
    pub(super) impurity: Option<f64>,
    pub(super) margin: Option<Margins>,
    pub(super) mixes: u64,
}

impl Told {
    /// Of the plan of one group; `truth` where it is asked for.
    pub(super) fn of(plan: &StepPlan, group: &Group, truth: Option<Truth<'_>>) -> Self {
        let PseudoLabels { labels, weights } = &plan.pseudo;
        let truth = truth.map(|truth| group.unlabelled.ids.iter().map(|&id| truth(id)).collect::<Vec<_>>());
        Self {
            utilisation: utilisation(weights),
            impurity: truth.and_then(|truth| impurity(labels, weights, &truth)),
            margin: plan.difficulty.as_ref().map(Margins::of),
            mixes: plan.mixes.len() as u64,
        }
    }

    /// Of all groups of a step, from what is told of those that each process speaks for.
    pub(super) fn of_all(team: &Team, own: &[Self]) -> Result<Self, TrainError> {
        if let ([one], 1) = (own, team.groups()) {
            return Ok(one.clone());
        }
        let said = serde_json::to_vec(own).map_err(garbled)?;
        let mut all = Vec::<Self>::new();
        for said in team.processes.gather_bytes(&said)? {
            all.extend(serde_json::from_slice::<Vec<Self>>(&said).map_err(garbled)?);
        }
        Ok(Self::mean(&all))
    }

    /// The mean of each figure over the groups that have it; mixtures are added up.
    fn mean(all: &[Self]) -> Self {
        let over = |of: &dyn Fn(&Self) -> Option<f64>| {
            let found: Vec<f64> = all.iter().filter_map(of).collect();
            (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
        };
        let halves = |of: fn(&Margins) -> EasyHard| EasyHard {
            easy: over(&|told| of(told.margin.as_ref()?).easy),
            hard: over(&|told| of(told.margin.as_ref()?).hard),
        };
        let has_margins = all.iter().any(|told| told.margin.is_some());
        Self {
            utilisation: over(&|told| told.utilisation),
            impurity: over(&|told| told.impurity),
            margin: has_margins.then(|| Margins {
                labelled: halves(|margins| margins.labelled),
                unlabelled: halves(|margins| margins.unlabelled),
            }),
            mixes: all.iter().map(|told| told.mixes).sum(),
        }
    }
}
