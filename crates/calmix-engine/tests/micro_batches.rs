//! A step that is divided into micro-batches gives the same update as the whole, where the two can be compared bit for bit.

use std::ops::Range;

use calmix_core::method::Method;
use calmix_core::micro_batching::{MicroBatchRows, MicroBatching, Partition};
use calmix_core::planner::Planner;
use calmix_core::pseudo::{Base, PseudoLabels};
use calmix_core::rng::Seed;
use calmix_core::schedule::RunStep;
use calmix_engine::batch::{Batch, LabelledRows, UnlabelledRows};
use calmix_engine::device::set_threads;
use calmix_engine::engine::{Engine, EngineSnapshot, Settings};
use calmix_engine::error::EngineError;

use calmix_engine::micro_batch_plan::{Image, LocalPlan, MicroBatchPlan};
use calmix_recipe::step_kind::StepKind;

use crate::methods::{calibratemix, fixmatch, plain};
use crate::run::{Rows, Views, learn, settings};

const ROWS: Rows = Rows { labelled: 8, unlabelled: 16 };

fn engine(settings: Settings) -> Engine {
    Engine::new(settings, Seed(11)).expect("an engine")
}

fn micro_batch(labelled: Range<usize>, unlabelled: Range<usize>) -> MicroBatchRows {
    MicroBatchRows { labelled, unlabelled }
}

/// The same rows twice.
fn doubled(views: &Views) -> Views {
    let mut twice = views.clone();
    twice.ids.extend_from_slice(&views.ids);
    twice.labels.extend_from_slice(&views.labels);
    twice.x.extend_from_slice(&views.x);
    twice.unlabelled_ids.extend_from_slice(&views.unlabelled_ids);
    twice.weak.extend_from_slice(&views.weak);
    twice.strong.extend_from_slice(&views.strong);
    twice
}

fn half(batch: &Batch<'_>, n: usize, size: usize) -> EngineSnapshot {
    let (x, u) = (batch.labelled.ids.len() / 2, batch.unlabelled.ids.len() / 2);
    let at = |count: usize| n * count..(n + 1) * count;
    let half = Batch {
        step: batch.step,
        labelled: LabelledRows {
            ids: &batch.labelled.ids[at(x)],
            labels: &batch.labelled.labels[at(x)],
            pixels: &batch.labelled.pixels[at(x * size)],
        },
        unlabelled: UnlabelledRows {
            ids: &batch.unlabelled.ids[at(u)],
            weak: &batch.unlabelled.weak[at(u * size)],
            strong: &batch.unlabelled.strong[at(u * size)],
        },
        partition: &Partition::whole(x, u),
    };
    let mut engine = engine(settings(4));
    learn(&mut engine, &plain(Base::Supervised), &half, &nothing(u).into(), 0.03).expect("a step");
    engine.snapshot().expect("a snapshot")
}

fn nothing(rows: usize) -> calmix_core::plan::StepPlan {
    let pseudo = PseudoLabels::new(vec![0; rows], vec![0.0; rows]);
    calmix_core::plan::StepPlan { pseudo, ..Default::default() }
}

/// Two groups with the same rows are as good as one. Two micro-batches are run again for their gradient where one is not, so
/// this also checks that a pass without a gradient has the bits of one with it.
#[test]
fn mean_of_identical_groups_is_the_group() {
    set_threads(1);
    let method: Method = calibratemix(fixmatch());
    for step in [StepKind::Concat, StepKind::Joint, StepKind::Lean] {
        let settings = Settings { step, ..settings(4) };
        let views = Views::at(0, ROWS, &settings);
        let ids: Vec<u64> = (0..64).collect();
        let mut planner = Planner::new(method, settings.classes, &ids, 1_000, Seed(3));
        let mut one = engine(settings);
        let observed = one.observe(&method, &views.batch(), true).expect("an observation");
        let planned = planner.plan(
            &observed.observation().expect("rows"),
            &views.unlabelled_ids,
            RunStep { step: 50, steps: 100 },
        );
        let plan = LocalPlan::from(planned.expect("a plan").plan);
        assert!(!plan.micro_batches[0].mixes.is_empty(), "the mixup is on");
        let alone = learn(&mut one, &method, &views.batch(), &plan, 0.03).expect("a step");

        let mut twins = doubled(&views);
        twins.partition = Some(Partition {
            micro_batches: vec![micro_batch(0..8, 0..16), micro_batch(8..16, 16..32)],
            micro_batching: MicroBatching::new(2, 1),
            labelled: 8,
            unlabelled: 16,
        });
        // The second group receives every image that it mixes from elsewhere: pixels are pixels.
        let mut second = plan.micro_batches[0].clone();
        let mut partners = Vec::new();
        for mix in &mut second.mixes {
            for image in [&mut mix.a, &mut mix.b] {
                let (pixels, at) = match *image {
                    Image::Labelled(i) => (&views.x, i),
                    Image::Weak(j) => (&views.weak, j),
                    Image::Partner(_) => unreachable!("nothing came from elsewhere"),
                };
                let size = settings.model.image_bytes();
                *image = Image::Partner(partners.len() / size);
                partners.extend_from_slice(&pixels[at * size..(at + 1) * size]);
            }
        }
        let both = LocalPlan { micro_batches: vec![plan.micro_batches[0].clone(), second], partners };
        let mut two = engine(settings);
        let output = learn(&mut two, &method, &twins.batch(), &both, 0.03);
        assert_eq!(output.expect("a step"), alone, "{step:?}");
        assert!(two.snapshot().expect("a snapshot") == one.snapshot().expect("a snapshot"), "{step:?}");
    }
}

/// Tallies, which travel with the gradient sum, are added over the micro-batches unchanged.
#[test]
fn tallies_are_added_up() {
    set_threads(1);
    let settings = settings(4);
    let mut views = Views::at(0, ROWS, &settings);
    views.partition = Some(halves());
    let plan = |tally: &[f32]| MicroBatchPlan {
        pseudo: nothing(8).pseudo,
        tally: tally.to_vec(),
        ..MicroBatchPlan::default()
    };
    let both =
        |a: &[f32], b: &[f32]| LocalPlan { micro_batches: vec![plan(a), plan(b)], ..LocalPlan::default() };
    let method = plain(Base::Supervised);
    let output =
        learn(&mut engine(settings), &method, &views.batch(), &both(&[1.0, 7.0], &[2.0, -3.0]), 0.03);
    assert_eq!(output.expect("a step").tally, [3.0, 4.0]);
    let refused = learn(&mut engine(settings), &method, &views.batch(), &both(&[1.0], &[]), 0.03);
    assert!(matches!(refused, Err(EngineError::Misfit(_))));
}

/// One group in two micro-batches.
fn halves() -> Partition {
    Partition {
        micro_batches: vec![micro_batch(0..4, 0..8), micro_batch(4..8, 8..16)],
        micro_batching: MicroBatching::new(1, 2),
        labelled: 8,
        unlabelled: 16,
    }
}

/// A group of two halves learns the mean of what the halves would learn: with a first momentum of nothing the velocity
/// is the gradient, and halves are exact.
#[test]
fn a_group_in_two_micro_batches_learns_the_mean_of_its_halves() {
    set_threads(1);
    let settings = settings(4);
    let mut views = Views::at(0, ROWS, &settings);
    views.partition = Some(halves());
    let batch = views.batch();
    let mut whole = engine(settings);
    let method = plain(Base::Supervised);
    let micro_batch_plan = || MicroBatchPlan { pseudo: nothing(8).pseudo, ..MicroBatchPlan::default() };
    let plan =
        LocalPlan { micro_batches: vec![micro_batch_plan(), micro_batch_plan()], ..LocalPlan::default() };
    learn(&mut whole, &method, &batch, &plan, 0.03).expect("a step");
    let numbers = |bytes: &[u8]| {
        let file = safetensors::SafeTensors::deserialize(bytes).expect("a file");
        let mut named: Vec<_> = file.tensors();
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let float = |four: &[u8]| f32::from_le_bytes(four.try_into().expect("four bytes"));
        let floats = named.iter().filter(|(_, view)| view.dtype() == safetensors::Dtype::F32);
        floats
            .flat_map(|(_, view)| view.data().chunks_exact(4).map(float).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let halves = [0, 1].map(|n| half(&batch, n, settings.model.image_bytes()));
    let whole = whole.snapshot().expect("a snapshot");
    for (name, of) in [
        (
            "statistics and weights",
            (|snapshot: &EngineSnapshot| snapshot.weights.clone()) as fn(&EngineSnapshot) -> Vec<u8>,
        ),
        ("gradient", |snapshot| snapshot.momentum.clone()),
    ] {
        let (a, b) = (numbers(&of(&halves[0])), numbers(&of(&halves[1])));
        let all = numbers(&of(&whole));
        assert!(all.len() == a.len() && !all.is_empty());
        for ((whole, a), b) in all.iter().zip(a).zip(b) {
            let mean = f32::midpoint(a, b);
            assert!(
                (whole - mean).abs() <= 1e-6 * (1.0 + mean.abs()),
                "{name}: {whole} is not the mean of {a} and {b}"
            );
        }
    }
}

#[test]
fn micro_batches_that_are_not_the_batch_are_refused() {
    let settings = settings(4);
    let whole = Partition::whole(8, 16);
    for (name, micro_batches) in [
        ("a gap", vec![micro_batch(0..4, 0..8), micro_batch(5..8, 8..16)]),
        ("too few rows", vec![micro_batch(0..8, 0..8)]),
        ("a micro-batch without labels", vec![micro_batch(0..8, 0..8), micro_batch(8..8, 8..16)]),
        ("no micro-batch", vec![]),
    ] {
        let mut views = Views::at(0, ROWS, &settings);
        views.partition = Some(Partition {
            micro_batching: MicroBatching::new(1, micro_batches.len() as u32),
            micro_batches,
            ..whole.clone()
        });
        let observed = engine(settings).observe(&plain(Base::Supervised), &views.batch(), false);
        assert!(matches!(observed, Err(EngineError::Misfit(_))), "{name}");
    }
}
