//! Properties of every plan, for any method, batch and values.
// Not every function here is a `#[test]`, but all of it is.

mod batch;
mod methods;

use std::collections::BTreeSet;

use calmix_core::error::CoreError;
use calmix_core::margin::LabelledMargins;
use calmix_core::matrix::Matrix;
use calmix_core::method::Method;
use calmix_core::mixup::pair::SameSource;
use calmix_core::mixup::{Anchors, ApmFrom, MixLoss, Pairing, Row};
use calmix_core::observation::Observation;
use calmix_core::plan::StepPlan;
use calmix_core::planner::Planner;
use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, BaseState, FixMatch, FlexMatch, SoftMatch};
use calmix_core::rng::{Domain, Seed};
use calmix_core::samples::Samples;
use calmix_core::schedule::{RunStep, Start};
use proptest::prelude::*;

use batch::{Batch, SAMPLES, Values};
use methods::methods;

/// A step of a short run.
fn at(step: u64) -> RunStep {
    RunStep { step, steps: 10 }
}

fn planner(method: Method, classes: usize) -> Planner {
    let all: Vec<u64> = (0..SAMPLES as u64).collect();
    Planner::new(method, classes, &all, SAMPLES, Seed(5))
}

/// A step that counts. A sample's slot is its id.
fn advance(planner: &mut Planner, batch: &Batch, step: u64) -> StepPlan {
    let planned = planner.plan(&batch.observation(), &batch.u_ids, at(step)).unwrap();
    planner.commit(planned)
}

fn values() -> impl Strategy<Value = Values> {
    prop_oneof![3 => Just(Values::Ordinary), 1 => Just(Values::AllEqual), 1 => Just(Values::Extreme)]
}

/// Labelled rows, unlabelled rows, classes, width: zero and one among them.
fn sizes() -> impl Strategy<Value = [usize; 4]> {
    (0..9_usize, 0..20_usize, 1..6_usize, 0..7_usize).prop_map(|(x, u, c, d)| [x, u, c, d])
}

fn sorted(of: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut rows: Vec<usize> = of.into_iter().collect();
    rows.sort_unstable();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any finite input gives a plan that is sound: halves partition, targets are distributions, pairs are
    /// of the kinds their method allows.
    #[test]
    fn plans_are_sound(method in methods(), size in sizes(), values in values(), case in any::<u64>()) {
        let mut run = planner(method, size[2]);
        let mixup = method.mixup;
        for step in 0..4 {
            let batch = Batch::draw(case.wrapping_add(step), size, values, false);
            let plan = advance(&mut run, &batch, step);
            prop_assert_eq!(plan.pseudo.labels.len(), batch.u_ids.len());
            prop_assert!(plan.pseudo.weights.iter().all(|w| (0.0..=1.0).contains(w)));
            prop_assert_eq!(plan.targets.len(), plan.mixes.len() * batch.classes);
            for target in plan.targets.chunks_exact(batch.classes) {
                prop_assert!((target.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{:?}", target);
                prop_assert!(target.iter().all(|&y| y >= 0.0));
            }
            let weight: f32 = plan.mixes.iter().map(|mix| mix.weight).sum();
            let kinds = if mixup.loss == MixLoss::BinaryCrossEntropy { 4.0 } else { 1.0 };
            prop_assert!((0.0..kinds + 1e-5).contains(&weight), "weights sum to {}", weight);

            let Some(difficulty) = &plan.difficulty else { continue };
            for (halves, rows) in [
                (&difficulty.labelled, batch.x_ids.len()),
                (&difficulty.unlabelled, batch.u_ids.len()),
            ] {
                let both = sorted(halves.easy.iter().chain(&halves.hard).copied());
                prop_assert_eq!(both, (0..rows).collect::<Vec<_>>());
            }
            let easy = |row| match row {
                Row::Labelled(i) => difficulty.labelled.easy.contains(&i),
                Row::Unlabelled(j) => difficulty.unlabelled.easy.contains(&j),
            };
            let id = |row| match row {
                Row::Labelled(i) => batch.x_ids[i],
                Row::Unlabelled(j) => batch.u_ids[j],
            };
            for mix in &plan.mixes {
                prop_assert!(easy(mix.a) != easy(mix.b), "{:?} mixes two of one half", mix);
                prop_assert!((0.0..=1.0).contains(&mix.lambda));
                if mixup.same_source == SameSource::Excluded {
                    prop_assert!(id(mix.a) != id(mix.b), "{:?} mixes an image with itself", mix);
                }
                if matches!(mixup.pairing, Pairing::CalibrateMix(_)) {
                    prop_assert!(matches!(mix.a, Row::Labelled(_)), "{:?} has no label", mix);
                    prop_assert_eq!(matches!(mix.b, Row::Unlabelled(_)), !batch.u_ids.is_empty());
                }
            }
        }
    }

    /// FlexMatch's histogram, moved by what batches change, is what a recount of all samples gives.
    #[test]
    fn the_histogram_equals_a_recount(warmup in any::<bool>(), size in sizes(), case in any::<u64>()) {
        let base = Base::FlexMatch(FlexMatch { threshold: 0.4, warmup, ..FlexMatch::default() });
        let mut run = planner(paper(base).without_mixup(), size[2]);
        for step in 0..6 {
            advance(&mut run, &Batch::draw(case.wrapping_add(step), size, Values::Ordinary, false), step);
            let labels = run.samples.micro_batches[0].selected.as_ref().unwrap();
            let BaseState::FlexMatch(state) = &run.state.base else { panic!("not FlexMatch's state") };
            for (class, &count) in state.selected.iter().enumerate() {
                let recount = labels.iter().filter(|&&label| usize::try_from(label) == Ok(class)).count();
                prop_assert_eq!(count, recount as u64);
            }
            prop_assert_eq!(state.unselected, labels.iter().filter(|&&label| label == -1).count() as u64);
        }
    }

    /// A run that was written down and read back goes on with the same bits.
    #[test]
    fn state_round_trips(method in methods(), size in sizes(), case in any::<u64>()) {
        let mut run = planner(method, size[2]);
        for step in 0..3 {
            advance(&mut run, &Batch::draw(case.wrapping_add(step), size, Values::Ordinary, false), step);
        }
        let method = serde_json::from_str(&serde_json::to_string(&run.method).unwrap()).unwrap();
        let mut restored = planner(method, size[2]);
        restored.state = serde_json::from_str(&serde_json::to_string(&run.state).unwrap()).unwrap();
        let micro_batches = serde_json::to_string(&run.samples.micro_batches).unwrap();
        restored.samples.micro_batches = serde_json::from_str(&micro_batches).unwrap();
        let copy = |store: &LabelledMargins| LabelledMargins::from_parts(store.averaging(), store.parts().clone());
        restored.labelled.margins = run.labelled.margins.as_ref().map(|store| copy(store).unwrap());
        prop_assert_eq!(&run, &restored);
        let next = Batch::draw(case.wrapping_sub(1), size, Values::Ordinary, false);
        prop_assert_eq!(advance(&mut run, &next, 3), advance(&mut restored, &next, 3));
        prop_assert_eq!(run, restored);
    }

    /// The same batch in another order gives the same pairs. (Sums over the batch round differently, so the
    /// last bits of SoftMatch's weights may not agree.)
    #[test]
    fn the_order_of_the_batch_does_not_matter(method in methods(), size in sizes(), case in any::<u64>()) {
        let (mut run, mut other) = (planner(method, size[2]), planner(method, size[2]));
        for step in 0..4 {
            let batch = Batch::draw(case.wrapping_add(step), size, Values::Ordinary, true);
            let s = &mut Seed(case).stream(Domain::Split, step, 0);
            let mut order = |n: usize| {
                let mut order: Vec<usize> = (0..n).collect();
                s.shuffle(&mut order);
                order
            };
            let (x_order, u_order) = (order(batch.x_ids.len()), order(batch.u_ids.len()));
            let plan = advance(&mut run, &batch, step);
            let moved = advance(&mut other, &batch.reordered(&x_order, &u_order), step);
            for (j, &row) in u_order.iter().enumerate() {
                prop_assert_eq!(moved.pseudo.labels[j], plan.pseudo.labels[row]);
                prop_assert!((moved.pseudo.weights[j] - plan.pseudo.weights[row]).abs() < 1e-5);
            }
            let original = |row| match row {
                Row::Labelled(i) => Row::Labelled(x_order[i]),
                Row::Unlabelled(j) => Row::Unlabelled(u_order[j]),
            };
            let pairs: BTreeSet<_> =
                plan.mixes.iter().map(|m| (m.a, m.b, m.lambda.to_bits(), m.class_a, m.class_b)).collect();
            let moved: BTreeSet<_> = moved
                .mixes
                .iter()
                .map(|m| (original(m.a), original(m.b), m.lambda.to_bits(), m.class_a, m.class_b))
                .collect();
            prop_assert_eq!(pairs, moved);
        }
    }

    /// Which micro-batch a sample belongs to changes nothing, to the bit: rows that are visited micro-batch by micro-batch have
    /// the same margins, and change FlexMatch's histogram by the same numbers.
    #[test]
    fn micro_batches_remember_what_one_micro_batch_would(
        method in methods(), size in sizes(), micro_batches in 1..5_u64, case in any::<u64>()
    ) {
        let lengths = (0..micro_batches).map(|micro_batch| (SAMPLES as u64 - micro_batch).div_ceil(micro_batches) as usize);
        let mut one = Samples::new(&method, size[2], [SAMPLES]);
        let mut many = Samples::new(&method, size[2], lengths);
        let guided = method.guidance().is_some();
        for step in 0..4 {
            let batch = Batch::draw(case.wrapping_add(step), size, Values::Ordinary, false);
            let logits = batch.observation().unlabelled.logits;
            let full = one.visit_unlabelled(&method, 0, &batch.u_ids, logits, guided).unwrap();
            let mut selected = vec![0.0; full.selected.len()];
            for micro_batch in 0..micro_batches {
                let rows: Vec<usize> =
                    (0..batch.u_ids.len()).filter(|&row| batch.u_ids[row] % micro_batches == micro_batch).collect();
                let slots: Vec<u64> = rows.iter().map(|&row| batch.u_ids[row] / micro_batches).collect();
                let part: Vec<f32> = rows.iter().flat_map(|&row| logits.row(row)).copied().collect();
                let part = Matrix::new(&part, rows.len(), logits.width()).unwrap();
                let visit = many.visit_unlabelled(&method, micro_batch as usize, &slots, part, guided).unwrap();
                for (&row, apm) in rows.iter().zip(visit.apm.iter().flatten()) {
                    prop_assert_eq!(full.apm.as_ref().unwrap()[row].to_bits(), apm.to_bits());
                }
                selected.iter_mut().zip(visit.selected).for_each(|(sum, change)| *sum += change);
            }
            prop_assert_eq!(&selected, &full.selected);
        }
    }

    /// A step that does not count leaves nothing behind, whatever the method.
    #[test]
    fn an_undone_step_leaves_nothing(method in methods(), size in sizes(), case in any::<u64>()) {
        let mut run = planner(method, size[2]);
        for step in 0..3 {
            let batch = Batch::draw(case.wrapping_add(step), size, Values::Ordinary, false);
            let before = run.clone();
            run.plan(&batch.observation(), &batch.u_ids, at(step)).unwrap();
            run.undo();
            prop_assert_eq!(&run, &before);
            advance(&mut run, &batch, step);
        }
    }
}

fn ordinary(size: [usize; 4]) -> Batch {
    Batch::draw(1, size, Values::Ordinary, true)
}

fn at_once(base: Base) -> Method {
    let mut method = paper(base);
    method.mixup.start = Start::at(0);
    method
}

#[test]
fn supervised_mixup_pairs_easy_with_hard() {
    let plan = advance(&mut planner(at_once(Base::Supervised), 3), &ordinary([9, 0, 3, 4]), 0);
    assert_eq!(plan.mixes.len(), 9, "5 easy with hard, 4 hard with easy");
    assert!(plan.mixes.iter().all(|mix| matches!((mix.a, mix.b), (Row::Labelled(_), Row::Labelled(_)))));
}

#[test]
fn the_papers_batch_gives_one_mixture_per_label() {
    let plan =
        advance(&mut planner(at_once(Base::FixMatch(FixMatch::default())), 3), &ordinary([8, 30, 3, 4]), 0);
    assert_eq!(plan.mixes.len(), 8);
    assert!(plan.mixes.iter().all(|mix| mix.weight == 1.0 / 8.0));
    assert_eq!(plan.mixes.iter().map(|mix| mix.lambda.to_bits()).collect::<BTreeSet<_>>().len(), 2);
}

#[test]
fn mixup_all_has_four_kinds_of_pairs() {
    let mut method = at_once(Base::FixMatch(FixMatch::default()));
    let guidance = *method.guidance().unwrap();
    let kinds = |anchors, method: &mut Method| {
        method.mixup.pairing = Pairing::All { guidance, anchors };
        let plan = advance(&mut planner(*method, 3), &ordinary([10, 30, 3, 4]), 0);
        let kind = |of: fn(Row, Row) -> bool| plan.mixes.iter().filter(|mix| of(mix.a, mix.b)).count();
        [
            kind(|a, b| matches!((a, b), (Row::Labelled(_), Row::Labelled(_)))),
            kind(|a, b| matches!((a, b), (Row::Labelled(_), Row::Unlabelled(_)))),
            kind(|a, b| matches!((a, b), (Row::Unlabelled(_), Row::Unlabelled(_)))),
        ]
    };
    // LE+LH, LE+UH and LH+UE from 5 labelled rows each, UE+UH from 15 unlabelled ones.
    assert_eq!(kinds(Anchors::Every, &mut method), [5, 10, 15]);
    // As many as there are labels: 2 + 3 + 2 + 3.
    assert_eq!(kinds(Anchors::Batch, &mut method), [2, 5, 3]);
}

#[test]
fn random_mixup_has_as_many_pairs_as_labels() {
    let mut method = at_once(Base::FixMatch(FixMatch::default()));
    method.mixup.pairing = Pairing::Random;
    let plan = advance(&mut planner(method, 3), &ordinary([8, 30, 3, 4]), 0);
    assert_eq!(plan.mixes.len(), 8);
    assert!(plan.difficulty.is_none());
}

#[test]
fn crossed_mixup_gives_each_label_any_unlabelled_partner() {
    let mut method = at_once(Base::FixMatch(FixMatch::default()));
    method.mixup.pairing = Pairing::Crossed;
    let mut run = planner(method, 3);
    let mut partners = BTreeSet::new();
    for step in 0..60 {
        let plan = advance(&mut run, &ordinary([8, 30, 3, 4]), step);
        assert!(plan.difficulty.is_none());
        let anchors: Vec<Row> = plan.mixes.iter().map(|mix| mix.a).collect();
        assert_eq!(anchors, (0..8).map(Row::Labelled).collect::<Vec<_>>());
        partners.extend(plan.mixes.iter().map(|mix| mix.b));
    }
    // Of 480 draws, all 30 partners are missed with a probability of 3e-6.
    assert_eq!(partners, (0..30).map(Row::Unlabelled).collect());
    let labels_alone = Method { base: Base::Supervised, ..method };
    let plan = advance(&mut planner(labels_alone, 3), &ordinary([8, 0, 3, 4]), 0);
    assert_eq!(plan.mixes.len(), 8);
    assert!(plan.mixes.iter().all(|mix| mix.a != mix.b && matches!(mix.b, Row::Labelled(_))));
}

#[test]
fn margins_before_mixup_follow_apm_from() {
    let batch = ordinary([8, 30, 3, 4]);
    let mut run = planner(paper(Base::FixMatch(FixMatch::default())), 3);
    let plan = advance(&mut run, &batch, 0);
    assert!(plan.mixes.is_empty() && plan.difficulty.is_some());
    let visited = |run: &Planner| -> u32 {
        run.samples.micro_batches[0].margins.as_ref().unwrap().parts().visits.iter().sum()
    };
    assert_eq!(visited(&run), 30);

    let mut late = run.method;
    if let Pairing::CalibrateMix(guidance) = &mut late.mixup.pairing {
        guidance.apm_from = ApmFrom::MixStart;
    }
    let mut run = planner(late, 3);
    assert!(advance(&mut run, &batch, 0).difficulty.is_none());
    let aum = &run.labelled.margins.as_ref().unwrap().parts().visits;
    assert_eq!((visited(&run), aum.iter().sum::<u32>()), (0, 8));
}

#[test]
fn non_finite_values_are_refused_without_trace() {
    let mut run = planner(at_once(Base::SoftMatch(SoftMatch::default())), 3);
    let before = run.clone();
    let mut batch = ordinary([8, 30, 3, 4]);
    batch.zu[7] = f32::NAN;
    let refused = run.plan(&batch.observation(), &batch.u_ids, at(0));
    let message = refused.unwrap_err().to_string();
    let sample = batch.u_ids[2];
    assert_eq!(
        message,
        format!("row 2 of the unlabelled batch (sample {sample}) has logits that are not finite")
    );
    assert_eq!(run, before);
}

#[test]
fn inconsistent_observations_are_refused() {
    let mut run = planner(at_once(Base::Supervised), 3);
    let mut batch = ordinary([4, 6, 3, 2]);
    batch.y[1] = 3;
    let mut refusal = |batch: &Batch| run.plan(&batch.observation(), &batch.u_ids, at(0)).unwrap_err();
    assert_eq!(refusal(&batch).to_string(), "row 1 has label 3, but there are 3 classes");
    batch.y = vec![0; 3];
    assert_eq!(refusal(&batch).to_string(), "the labelled batch has 4 ids but 3 rows of labels");
    batch.y = vec![0; 4];
    let narrow = Batch { width: 1, fx: vec![0.0; 4], fu: vec![0.0; 6], ..batch.clone() };
    let observation = Observation { labelled: narrow.observation().labelled, ..batch.observation() };
    let refused = observation.check().unwrap_err().to_string();
    assert_eq!(refused, "the labelled batch has 1 features per row, but the unlabelled batch has 2");
    batch.u_ids[5] = SAMPLES as u64;
    assert!(matches!(refusal(&batch), CoreError::UnknownSample { sample: 40 }));
}
