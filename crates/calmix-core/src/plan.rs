//! Algorithm 1 of the paper, as one function: [`plan_step`].
//!
//! A plan consists of indices, weights and targets. It describes the update without the rules behind it, so that
//! the engine does not depend on the method, and this function does not depend on tensors.

use crate::error::CoreError;
use crate::method::feedback::{Feedback, Total};
use crate::method::{Method, MethodState};
use crate::mixup::mixer::Mixer;
use crate::mixup::pair::{Candidate, Dissimilar, PairRule, SameSource};
use crate::mixup::split::Halves;
use crate::mixup::{Guidance, Mix, Pairing, Row};
use crate::observation::{PlanInput, RowMargins};
use crate::pseudo::PseudoLabels;
use crate::rng::{Domain, Seed, occurrences};
use crate::schedule::RunStep;

/// The plan of a step: everything that the update needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepPlan {
    /// Label and weight of each unlabelled row, for the loss of its strong view.
    pub pseudo: PseudoLabels,
    /// D_M: the mixtures, in the order of the kinds of pairs and then of the rows. Empty until the mixup term
    /// starts. The mixup loss is `Σ weight·H(target, p(mixture))`.
    pub mixes: Vec<Mix>,
    /// ỹ of each mixture, smoothed: `mixes.len()` rows of C.
    pub targets: Vec<f32>,
    /// The difficulty of the rows; `None` if pairs are not guided by it, or before it is available.
    pub difficulty: Option<Difficulty>,
    /// This group's part of the update of the method's state, which follows once all groups have planned.
    pub feedback: Feedback,
}

/// The difficulty of the rows of a batch.
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

/// Plans the step of one group by Algorithm 1, line by line.
///
/// | Algorithm 1 | here |
/// |---|---|
/// | 1: ŷ = argmax p(π(x̂)) for x̂ ∈ D_U | [`Base::pseudo_label`](crate::pseudo::Base::pseudo_label), with the weight that line 14 gives each row |
/// | 2: AUM for D_L, APM for D_U | [`PlanInput::margins`], from [`Samples`](crate::samples::Samples) and [`LabelledSamples`](crate::samples::LabelledSamples) |
/// | 3–7: split by τ_L and τ_U into easy (≥) and hard (<) | [`Split::halves`](crate::mixup::split::Split::halves) |
/// | 8–10: Mixup(D_L,easy, top-k dissimilar of D_U,hard) and Mixup(D_L,hard, top-k dissimilar of D_U,easy) | `kinds`, [`PairRule::partners`], [`Mixup::draw_lambda`](crate::mixup::Mixup::draw_lambda) |
/// | 11: D_M = their union | [`StepPlan::mixes`] |
/// | 12–15: the losses | the engine's, from this plan and [`Method::loss_terms`] |
///
/// It is a pure function: every process of a group makes the same plan from the same arguments. Groups of one step start
/// from the same `state` and end in the same one. Each group has its own `seed`, so groups draw independently. Nothing here
/// depends on the order of the samples in the batch, except between several occurrences of one sample.
///
/// # Errors
/// If the observations contradict each other or are not finite, or the state belongs to another method.
pub fn plan_step(
    method: &Method,
    input: &PlanInput<'_>,
    state: &mut MethodState,
    seed: Seed,
    at: RunStep,
) -> Result<StepPlan, CoreError> {
    input.check()?;
    let batch = &input.observation;
    let (x, u) = (&batch.labelled, &batch.unlabelled);

    // Line 1: pseudo-labels of D_U.
    let pseudo = method.base.pseudo_label(u.logits, input.sums, &mut state.base)?;
    let utilisation = Total::of(pseudo.weights.iter().map(|&w| f64::from(w)));
    let feedback = Feedback { utilisation, ..Feedback::default() };
    let mut plan = StepPlan { pseudo, feedback, ..StepPlan::default() };
    let Some(mixup) = method.mixup() else { return Ok(plan) };

    if let (Some(guidance), Some(RowMargins { aum, apm })) = (method.guidance(), input.margins) {
        // Line 2: AUM of D_L and APM of D_U, including this visit. Lines 3–7: split each into easy (≥ τ) and hard (< τ).
        let labelled = guidance.split.halves(aum, x.ids, &state.labelled_threshold);
        let unlabelled = guidance.split.halves(apm, u.ids, &state.unlabelled_threshold);
        let quantile = |values| guidance.split.batch_quantile(values).map(Total::one).unwrap_or_default();
        plan.feedback.labelled_quantile = quantile(aum);
        plan.feedback.unlabelled_quantile = quantile(apm);
        plan.difficulty = Some(Difficulty { aum: aum.to_vec(), apm: apm.to_vec(), labelled, unlabelled });
    }
    let weight = method.mix_weight(at, state);
    if weight == 0.0 {
        return Ok(plan);
    }

    // Lines 8–10: pair each anchor with one of its k most dissimilar candidates.
    let mixer = Mixer { mixup, batch, pseudo: &plan.pseudo, seed, step: at.step };
    let pairs: Vec<Vec<(Row, Row)>> = match (&mixup.pairing, &plan.difficulty) {
        (Pairing::Random, _) => vec![random_pairs(&mixer)],
        (Pairing::Crossed, _) => vec![crossed_pairs(&mixer)],
        (_, None) => return Err(CoreError::MissingState { what: "margins" }),
        (pairing, Some(difficulty)) => {
            let [le, lh] = difficulty.labelled.rows(Row::Labelled);
            let [ue, uh] = difficulty.unlabelled.rows(Row::Unlabelled);
            let kinds: &[(&[Row], &[Row])] = match pairing {
                // Supervised training: the two labelled halves with each other.
                _ if u.ids.is_empty() => &[(&le, &lh), (&lh, &le)],
                // The ablation "mixup all".
                Pairing::All { .. } => &[(&le, &lh), (&le, &uh), (&lh, &ue), (&ue, &uh)],
                // Mixup(D_L,easy, top-k dissimilar of D_U,hard) and Mixup(D_L,hard, top-k dissimilar of D_U,easy).
                _ => &[(&le, &uh), (&lh, &ue)],
            };
            let pairs_of_kind = |(kind, (anchors, pool)): (usize, &(&[Row], &[Row]))| {
                // Without unlabelled rows, all labelled rows are anchors.
                let max_anchors =
                    if u.ids.is_empty() { None } else { pairing.max_anchors(kind, x.ids.len()) };
                let pairs = |rule| guided_pairs(&mixer, rule, kind as u64, anchors, pool, max_anchors);
                pairing.guidance().map(pairs)
            };
            kinds.iter().enumerate().filter_map(pairs_of_kind).collect()
        }
    };

    // Line 11: D_M, the union of the mixtures.
    let mixed = pairs.iter().zip(0..).map(|(pairs, kind)| mixer.mix(kind, pairs)).collect();
    let mixes = mixer.union(mixed, weight as f32);
    plan.targets = mixer.targets(&mixes, method.smoothing);
    plan.mixes = mixes;
    Ok(plan)
}

/// Pairs each anchor, or `max_anchors` of them, with one of its least similar candidates in the pool; anchors without a
/// candidate are left out.
fn guided_pairs(
    mixer: &Mixer<'_>,
    guidance: &Guidance,
    kind: u64,
    anchors: &[Row],
    pool: &[Row],
    max_anchors: Option<usize>,
) -> Vec<(Row, Row)> {
    let candidate = |row: Row| {
        let vector = match row {
            Row::Labelled(i) => mixer.batch.labelled.vector(guidance.space, i),
            Row::Unlabelled(j) => mixer.batch.unlabelled.vector(guidance.space, j),
        };
        Candidate { id: mixer.id(row), vector }
    };
    let mixable =
        |rows: &[Row]| -> Vec<Row> { rows.iter().copied().filter(|&row| mixer.is_mixable(row)).collect() };
    let mut anchors = mixable(anchors);
    let pool = mixable(pool);
    if let Some(count) = max_anchors.filter(|&count| count < anchors.len()) {
        anchors = drawn_rows(mixer, kind, &anchors, count);
    }
    let rule = PairRule { dissimilar: guidance.dissimilar, same_source: mixer.mixup.same_source };
    let partners = rule.partners(
        &anchors.iter().map(|&row| candidate(row)).collect::<Vec<_>>(),
        &pool.iter().map(|&row| candidate(row)).collect::<Vec<_>>(),
        mixer.seed.child(kind),
        mixer.step,
    );
    anchors.iter().zip(partners).filter_map(|(&a, partner)| Some((a, pool[partner?]))).collect()
}

/// Pairs each labelled row with any unlabelled one, or with another labelled one if there are none.
fn crossed_pairs(mixer: &Mixer<'_>) -> Vec<(Row, Row)> {
    let (x, u) = (mixer.batch.labelled.ids.len(), mixer.batch.unlabelled.ids.len());
    let labelled: Vec<Row> = (0..x).map(Row::Labelled).collect();
    let unlabelled: Vec<Row> = (0..u).map(Row::Unlabelled).collect();
    let pool = if unlabelled.is_empty() { &labelled } else { &unlabelled };
    let any = Guidance { dissimilar: Dissimilar::Any, ..Guidance::default() };
    guided_pairs(mixer, &any, 0, &labelled, pool, None)
}

/// Draws `count` of the rows, in their order. Which samples are drawn does not depend on their order in the batch.
fn drawn_rows(mixer: &Mixer<'_>, kind: u64, rows: &[Row], count: usize) -> Vec<Row> {
    let ids: Vec<u64> = rows.iter().map(|&row| mixer.id(row)).collect();
    let seed = mixer.seed.child(kind);
    let rank = |(n, occurrence): (usize, u32)| {
        let draw = seed.stream(Domain::Anchor, mixer.step, ids[n]).occurrence(occurrence).next_u64();
        (draw, ids[n], n)
    };
    let mut ranked: Vec<_> = occurrences(ids.iter().copied()).into_iter().enumerate().map(rank).collect();
    ranked.sort_unstable();
    let mut chosen: Vec<usize> = ranked.into_iter().take(count).map(|(.., n)| n).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|n| rows[n]).collect()
}

/// Draws the pairs of random mixup: ordered pairs of two different rows of the joint pool, as many as labelled rows.
fn random_pairs(mixer: &Mixer<'_>) -> Vec<(Row, Row)> {
    let (x, u) = (mixer.batch.labelled.ids.len(), mixer.batch.unlabelled.ids.len());
    let rows = (0..x).map(Row::Labelled).chain((0..u).map(Row::Unlabelled));
    let mut pool: Vec<Row> = rows.filter(|&row| mixer.is_mixable(row)).collect();
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
