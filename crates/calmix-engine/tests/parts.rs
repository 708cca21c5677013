//! A step that is cut into parts learns what the whole would, where the two can be compared to the bit.
#![allow(clippy::expect_used)] // in the functions that the tests share

#[path = "training/methods.rs"]
mod methods;
#[path = "training/run.rs"]
mod run;

use std::ops::Range;

use calmix_core::method::Method;
use calmix_core::plan::plan_step;
use calmix_core::pseudo::{Base, PseudoLabels};
use calmix_core::rng::Seed;
use calmix_dist::Processes;
use calmix_engine::batch::{Batch, Cut, Labelled, Part, Unlabelled};
use calmix_engine::device::set_threads;
use calmix_engine::engine::{Engine, Settings, Snapshot};
use calmix_engine::error::EngineError;
use calmix_engine::step::Passes;
use calmix_engine::task::{Image, Task, Tasks};

use methods::{calibratemix, fixmatch, plain};
use run::{Rows, Views, settings};

const ROWS: Rows = Rows { labelled: 8, unlabelled: 16 };

fn engine(settings: Settings) -> Engine {
    Engine::new(settings, Seed(11)).expect("an engine")
}

fn part(labelled: Range<usize>, unlabelled: Range<usize>) -> Part {
    Part { labelled, unlabelled }
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

fn half(batch: &Batch<'_>, n: usize, size: usize) -> Snapshot {
    let (x, u) = (batch.labelled.ids.len() / 2, batch.unlabelled.ids.len() / 2);
    let at = |count: usize| n * count..(n + 1) * count;
    let half = Batch {
        step: batch.step,
        labelled: Labelled {
            ids: &batch.labelled.ids[at(x)],
            labels: &batch.labelled.labels[at(x)],
            pixels: &batch.labelled.pixels[at(x * size)],
        },
        unlabelled: Unlabelled {
            ids: &batch.unlabelled.ids[at(u)],
            weak: &batch.unlabelled.weak[at(u * size)],
            strong: &batch.unlabelled.strong[at(u * size)],
        },
    };
    let mut engine = engine(settings(4));
    engine.step(&plain(Base::Supervised), &half, 0.03, |_, _| Ok(nothing(u))).expect("a step");
    engine.snapshot().expect("a snapshot")
}

fn nothing(rows: usize) -> calmix_core::plan::StepPlan {
    let pseudo = PseudoLabels { labels: vec![0; rows], weights: vec![0.0; rows] };
    calmix_core::plan::StepPlan { pseudo, ..Default::default() }
}

/// Two groups with the same rows are as good as one.
#[test]
fn the_mean_of_a_group_and_its_twin_is_the_group() {
    set_threads(1);
    let method: Method = calibratemix(fixmatch());
    for passes in [Passes::Joint, Passes::Lean] {
        let settings = Settings { passes, ..settings(4) };
        let views = Views::at(0, ROWS, &settings);
        let ids: Vec<u64> = (0..64).collect();
        let plan = |seen: &calmix_core::observation::Observation<'_>| {
            let mut state = method.initial_state(settings.classes, 1_000);
            let mut samples = method.local_state(settings.classes, &ids, 1_000);
            plan_step(&method, seen, &mut state, &mut samples, Seed(3), 50)
        };
        let mut one = engine(settings);
        let mut planned = None;
        let step = one.step(&method, &views.batch(), 0.03, |_, seen| {
            planned = Some(plan(seen)?);
            plan(seen)
        });
        let alone = step.expect("a step");
        let task = Tasks::from(planned.expect("a plan"));
        assert!(task.mixing, "the mixup is on");

        let twins = doubled(&views);
        let cut = Cut {
            parts: vec![part(0..8, 0..16), part(8..16, 16..32)],
            all: 2,
            groups: 2,
            labelled: 8,
            unlabelled: 16,
        };
        let mut two = engine(settings);
        let step =
            two.step_in_parts(&Processes::alone(), &method, (&twins.batch(), &cut), 0.03, |_, seen| {
                assert_eq!((seen.labelled.ids.len(), seen.unlabelled.ids.len()), (16, 32));
                // The second group borrows every image that it mixes: pixels are pixels.
                let mut second = task.parts[0].clone();
                let mut borrowed = Vec::new();
                for mix in &mut second.mixes {
                    for image in [&mut mix.a, &mut mix.b] {
                        let (pixels, at) = match *image {
                            Image::Labelled(i) => (&views.x, i),
                            Image::Weak(j) => (&views.weak, j),
                            Image::Borrowed(_) => unreachable!("nothing was borrowed"),
                        };
                        let size = settings.size.bytes();
                        *image = Image::Borrowed(borrowed.len() / size);
                        borrowed.extend_from_slice(&pixels[at * size..(at + 1) * size]);
                    }
                }
                Ok(Tasks { parts: vec![task.parts[0].clone(), second], borrowed, mixing: true })
            });
        assert_eq!(step.expect("a step"), alone, "{passes:?}");
        assert!(two.snapshot().expect("a snapshot") == one.snapshot().expect("a snapshot"), "{passes:?}");
    }
}

/// A group of two halves learns the mean of what the halves would learn: with a first momentum of nothing the velocity
/// is the gradient, and halves are exact.
#[test]
fn a_group_in_two_parts_learns_the_mean_of_its_halves() {
    set_threads(1);
    let settings = settings(4);
    let views = Views::at(0, ROWS, &settings);
    let batch = views.batch();
    let cut = Cut {
        parts: vec![part(0..4, 0..8), part(4..8, 8..16)],
        all: 2,
        groups: 1,
        labelled: 8,
        unlabelled: 16,
    };
    let mut whole = engine(settings);
    let method = plain(Base::Supervised);
    let task = || Task { pseudo: nothing(8).pseudo, ..Task::default() };
    whole
        .step_in_parts(&Processes::alone(), &method, (&batch, &cut), 0.03, |_, _| {
            Ok(Tasks { parts: vec![task(), task()], ..Tasks::default() })
        })
        .expect("a step");
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
    let halves = [0, 1].map(|n| half(&batch, n, settings.size.bytes()));
    let whole = whole.snapshot().expect("a snapshot");
    for (name, of) in [
        ("statistics and weights", (|snapshot: &Snapshot| snapshot.live.clone()) as fn(&Snapshot) -> Vec<u8>),
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
fn parts_that_are_not_the_batch_are_refused() {
    let settings = settings(4);
    let views = Views::at(0, ROWS, &settings);
    let whole = Cut::whole(&views.batch());
    for (name, parts) in [
        ("a gap", vec![part(0..4, 0..8), part(5..8, 8..16)]),
        ("too few rows", vec![part(0..8, 0..8)]),
        ("a part without labels", vec![part(0..8, 0..8), part(8..8, 8..16)]),
        ("no part", vec![]),
    ] {
        let cut = Cut { all: parts.len(), parts, ..whole.clone() };
        let batch = views.batch();
        let step = engine(settings).step_in_parts(
            &Processes::alone(),
            &plain(Base::Supervised),
            (&batch, &cut),
            0.03,
            |_, _| Ok(Tasks::default()),
        );
        assert!(matches!(step, Err(EngineError::Misfit(_))), "{name}: {step:?}");
    }
}
