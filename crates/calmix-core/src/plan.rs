//! Algorithm 1 of the paper, as one function: [`plan_step`].
//!
//! A plan is indices, weights and targets. It says what the update has to do and nothing about why, so that
//! the engine never meets a rule of the method, and this function never meets a tensor.

use std::{error, fmt};

use crate::margin::margin;
use crate::method::{Method, MethodState};
use crate::mixup::mixer::Mixer;
use crate::mixup::{ApmFrom, Mix, Pairing, Row};
use crate::observation::{Observation, ObservationError};
use crate::pair::{Candidate, PairRule, SameSource};
use crate::pseudo::PseudoLabels;
use crate::rng::{Domain, Seed};
use crate::samples::{SampleState, StateError};
use crate::schedule::MixStart;
use crate::split::Halves;

/// Everything the update needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepPlan {
    /// Label and weight of each unlabelled row, for the loss of its strong view.
    pub pseudo: PseudoLabels,
    /// D_M: what to mix, in the order of the kinds of pairs and then of the rows. Empty while the mixup term
    /// has not begun. The mixup loss is `Σ weight·H(target, p(mixture))`.
    pub mixes: Vec<Mix>,
    /// ỹ of each mixture, smoothed: `mixes.len()` rows of C.
    pub targets: Vec<f32>,
    /// How difficult the rows are, where the pairs are guided by it and it is already known.
    pub difficulty: Option<Difficulty>,
}

/// How difficult the rows of a batch are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difficulty {
    /// AUM of each labelled row.
    pub aum: Vec<f64>,
    /// APM of each unlabelled row at its pseudo-label.
    pub apm: Vec<f64>,
    /// The labelled halves, LE and LH.
    pub labelled: Halves,
    /// The unlabelled halves, UE and UH.
    pub unlabelled: Halves,
}

/// Why there is no plan.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlanError {
    /// The observation contradicts itself.
    Observation(ObservationError),
    /// The memory of a sample could not be reached.
    State(StateError),
}

// Transparent: what stands inside speaks for itself, and its cause is the cause.
impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observation(inside) => inside.fmt(f),
            Self::State(inside) => inside.fmt(f),
        }
    }
}

impl error::Error for PlanError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Observation(inside) => inside.source(),
            Self::State(inside) => inside.source(),
        }
    }
}

impl From<ObservationError> for PlanError {
    fn from(inside: ObservationError) -> Self {
        Self::Observation(inside)
    }
}

impl From<StateError> for PlanError {
    fn from(inside: StateError) -> Self {
        Self::State(inside)
    }
}

/// Algorithm 1: what one group's batch teaches, line by line.
///
/// | Algorithm 1 | here |
/// |---|---|
/// | 1: ŷ = argmax p(π(x̂)) for x̂ ∈ D_U | [`Base::pseudo_label`](crate::pseudo::Base::pseudo_label), with the weight that line 14 gives each row |
/// | 2: AUM for D_L, APM for D_U | [`SampleState::visit_labelled`], [`SampleState::visit_unlabelled`] |
/// | 3–7: split by τ_L and τ_U into easy (≥) and hard (<) | [`Split::halves`](crate::split::Split::halves) |
/// | 8–10: Mixup(D_L,easy, top-k dissimilar of D_U,hard) and Mixup(D_L,hard, top-k dissimilar of D_U,easy) | `kinds`, [`PairRule::partners`], [`Lambda::draw`](crate::mixup::Lambda::draw) |
/// | 11: D_M = their union | [`StepPlan::mixes`] |
/// | 12–15: the losses | the engine's, from this plan |
///
/// `seed` is the group's own: groups of one step draw independently. Nothing here depends on the order in which
/// samples stand in the batch, except between several occurrences of one sample.
///
/// # Errors
/// If the observation contradicts itself or is not finite (nothing is remembered then), or the memory of a
/// sample cannot be reached.
pub fn plan_step(
    method: &Method,
    seen: &Observation<'_>,
    state: &mut MethodState,
    samples: &mut impl SampleState,
    seed: Seed,
    step: u64,
) -> Result<StepPlan, PlanError> {
    seen.check()?;
    let (x, u) = (&seen.labelled, &seen.unlabelled);

    // 1: pseudo-labels for the unlabelled batch.
    let pseudo = method.base.pseudo_label(x.logits, u.ids, u.logits, &mut state.base, samples)?;

    let Some(mixup) = &method.mixup else {
        return Ok(StepPlan { pseudo, ..StepPlan::default() });
    };
    let in_use = share_in_use(&mixup.start, &pseudo, samples)?;
    let term = mixup.start.weight(step, in_use, &mut state.utilisation);
    let mixer = Mixer { mixup, seen, pseudo: &pseudo, seed, step };

    let difficulty = match mixup.pairing.guidance() {
        None => None,
        Some(guidance) => {
            // 2: AUM for the labelled samples and APM for the unlabelled ones, this visit included.
            let margins: Vec<f64> =
                x.logits.iter().zip(seen.labels).map(|(z, &y)| margin(z, y as usize)).collect();
            let aum = samples.visit_labelled(x.ids, &margins)?;
            if term == 0.0 && guidance.apm_from == ApmFrom::MixStart {
                return Ok(StepPlan { pseudo, ..StepPlan::default() });
            }
            let apm = samples.visit_unlabelled(u.ids, u.logits, &pseudo.labels)?;

            // 3–7: split each batch into easy and hard.
            let labelled = guidance.split.halves(&aum, x.ids, &mut state.labelled_line, samples)?;
            let unlabelled = guidance.split.halves(&apm, u.ids, &mut state.unlabelled_line, samples)?;
            Some(Difficulty { aum, apm, labelled, unlabelled })
        }
    };
    if term == 0.0 {
        return Ok(StepPlan { pseudo, difficulty, ..StepPlan::default() });
    }

    // 8–10: mix easy with hard, each with one of its k most dissimilar.
    let pairs: Vec<Vec<(Row, Row)>> = match &difficulty {
        None => vec![random_pairs(&mixer)],
        Some(difficulty) => {
            let [le, lh] = difficulty.labelled.rows(Row::Labelled);
            let [ue, uh] = difficulty.unlabelled.rows(Row::Unlabelled);
            let kinds: &[(&[Row], &[Row])] = match &mixup.pairing {
                Pairing::All(_) => &[(&le, &lh), (&le, &uh), (&lh, &ue), (&ue, &uh)],
                _ if u.ids.is_empty() => &[(&le, &lh), (&lh, &le)],
                _ => &[(&le, &uh), (&lh, &ue)],
            };
            let kinds = kinds.iter().zip(0..);
            kinds.map(|((anchors, pool), kind)| guided_pairs(&mixer, kind, anchors, pool)).collect()
        }
    };

    // 11: D_M, their union.
    let mixed = pairs.iter().zip(0..).map(|(pairs, kind)| mixer.mix(kind, pairs)).collect();
    let mixes = mixer.unite(mixed, term as f32);
    let targets = mixer.targets(&mixes, method.smoothing);
    Ok(StepPlan { pseudo, mixes, targets, difficulty })
}

/// Each anchor with one of its most dissimilar in the pool; anchors without anyone are left out.
fn guided_pairs(mixer: &Mixer<'_>, kind: u64, anchors: &[Row], pool: &[Row]) -> Vec<(Row, Row)> {
    let Some(guidance) = mixer.mixup.pairing.guidance() else {
        return Vec::new();
    };
    let candidate = |row: Row| {
        let vector = match row {
            Row::Labelled(i) => mixer.seen.labelled.vector(guidance.space, i),
            Row::Unlabelled(j) => mixer.seen.unlabelled.vector(guidance.space, j),
        };
        Candidate { id: mixer.id(row), vector }
    };
    let taking_part =
        |rows: &[Row]| -> Vec<Row> { rows.iter().copied().filter(|&row| mixer.takes_part(row)).collect() };
    let (anchors, pool) = (taking_part(anchors), taking_part(pool));
    let rule = PairRule { dissimilar: guidance.dissimilar, same_source: mixer.mixup.same_source };
    let partners = rule.partners(
        &anchors.iter().map(|&row| candidate(row)).collect::<Vec<_>>(),
        &pool.iter().map(|&row| candidate(row)).collect::<Vec<_>>(),
        mixer.seed.child(kind),
        mixer.step,
    );
    anchors.iter().zip(partners).filter_map(|(&a, partner)| Some((a, pool[partner?]))).collect()
}

/// Random mixup: as many ordered pairs of two different rows of the joint pool as there are labelled rows.
fn random_pairs(mixer: &Mixer<'_>) -> Vec<(Row, Row)> {
    let (x, u) = (mixer.seen.labelled.ids.len(), mixer.seen.unlabelled.ids.len());
    let rows = (0..x).map(Row::Labelled).chain((0..u).map(Row::Unlabelled));
    let mut pool: Vec<Row> = rows.filter(|&row| mixer.takes_part(row)).collect();
    pool.sort_by_key(|&row| (mixer.id(row), row));
    let pair = |n: u64| {
        let mut stream = mixer.seed.stream(Domain::Partner, mixer.step, n);
        let first = *pool.get(stream.index(pool.len()))?;
        let same = |row| match mixer.mixup.same_source {
            SameSource::Excluded => mixer.id(row) == mixer.id(first),
            SameSource::Allowed => row == first,
        };
        let others: Vec<Row> = pool.iter().copied().filter(|&row| !same(row)).collect();
        Some((first, *others.get(stream.index(others.len()))?))
    };
    (0..x as u64).filter_map(pair).collect()
}

/// The share of the unlabelled samples in use, over all groups, where the start of the term depends on it.
fn share_in_use(
    start: &MixStart,
    pseudo: &PseudoLabels,
    samples: &mut impl SampleState,
) -> Result<f64, StateError> {
    if !matches!(start, MixStart::Utilisation { .. }) {
        return Ok(0.0);
    }
    let mut sums = [pseudo.weights.iter().map(|&w| f64::from(w)).sum(), pseudo.weights.len() as f64];
    samples.sum_over_groups(&mut sums)?;
    Ok(if sums[1] > 0.0 { sums[0] / sums[1] } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn a_failed_exchange_is_told_with_its_cause() {
        let error = PlanError::from(StateError::Exchange("the line is dead".into()));
        assert_eq!(error.to_string(), "the exchange with other processes failed");
        assert_eq!(error.source().unwrap().to_string(), "the line is dead");
        assert!(PlanError::from(StateError::UnknownSample { sample: 1 }).source().is_none());
    }
}
