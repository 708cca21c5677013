//! Whole steps, many of them: optimiser, average, statistics and every method.
//!
//! Twenty steps on their own are the test of how small differences add up; steps that each begin where the engine is
//! are the sharper test of a single one, because earlier differences cannot explain a deviation.

use std::env;
use std::path::PathBuf;

use calmix_core::method::{BaseLoss, Method};
use calmix_core::pseudo::Base;
use calmix_engine::device::set_threads;
use calmix_engine::engine::Settings;
use calmix_engine::optimiser::Sgd;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::FirstBlock;
use calmix_recipe::step_kind::StepKind;

use super::case::{Apart, Case};
use super::peer::Peer;
use crate::methods::{calibratemix, every, fixmatch, flexmatch, freematch, plain, released, softmatch};
use crate::run::{Rows, settings};

const ROWS: Rows = Rows { labelled: 8, unlabelled: 16 };

/// The kinds of step that a method can be run in.
fn kinds(method: &Method) -> &'static [StepKind] {
    if method.base_loss == BaseLoss::Twice {
        return &[StepKind::Joint];
    }
    &[StepKind::Concat, StepKind::Joint, StepKind::Lean]
}

#[test]
fn fifty_steps_of_the_optimiser() {
    set_threads(1);
    let mut peer = Peer::start();
    let settings = settings(8);
    let decayed = Settings { optimiser: Sgd { weight_decay: 5e-3, ..Sgd::default() }, ..settings };
    let momentum = Sgd { nesterov: false, momentum: 0.5, ..Sgd::default() };
    let settings = [
        ("Nesterov, decay", decayed),
        ("plain momentum", Settings { optimiser: momentum, ..settings }),
        ("clipped", Settings { clip: Some(0.5), ..settings }),
        ("quick statistics", Settings { norm_momentum: Some(0.25), ..settings }),
        (
            "the eps of USB's blocks",
            Settings { model: ModelSpec { norm_eps: Some(1e-5), ..settings.model }, ..settings },
        ),
        (
            "the blocks of the ports",
            Settings { model: ModelSpec { block: FirstBlock::Torch, ..settings.model }, ..settings },
        ),
    ];
    for (name, settings) in settings {
        let rows = Rows { labelled: 32, unlabelled: 0 };
        let case = Case { name, settings, method: plain(Base::Supervised), rows, steps: 50, at_a_time: 50 };
        let apart = case.compare(&mut peer);
        assert!(apart.largest() < 1e-4, "{name}: {apart}");
        if let Some(limit) = settings.clip {
            let norms = apart.told.iter().map(|told| told.output.gradient_norm);
            let clipped = norms.filter(|&norm| norm > limit).count();
            assert!((1..50).contains(&clipped), "{clipped} of 50 steps were clipped");
        }
    }
}

#[test]
fn twenty_steps_of_calibratemix() {
    set_threads(1);
    let mut peer = Peer::start();
    let bases = [
        ("FixMatch", fixmatch()),
        ("FlexMatch", flexmatch()),
        ("SoftMatch", softmatch()),
        ("FreeMatch", freematch()),
    ];
    for (name, base) in bases {
        let method = calibratemix(base);
        for &step in kinds(&method) {
            let settings = Settings { step, ..settings(8) };
            let case = Case { name, settings, method, rows: ROWS, steps: 20, at_a_time: 20 };
            let apart = case.compare(&mut peer);
            assert!(apart.largest() < 1e-3, "{name} {step:?}: {apart}");
            something_was_decided(name, &apart);
        }
    }
    // Two passes per step, summed in different orders: only the losses have to agree.
    let (name, method) = ("the released code", released());
    let case = Case { name, settings: settings(8), method, rows: ROWS, steps: 10, at_a_time: 10 };
    let apart = case.compare(&mut peer);
    assert!(apart.metrics < 1e-3 && apart.seen < 1e-3, "{name}: {apart}");
    assert_eq!(apart.told.iter().filter(|told| told.again.is_some()).count(), 8);
}

/// `cargo xtask check peers` names a folder, in which a PyTorch loop repeats these steps with `calmix.Planner`.
#[test]
fn ten_steps_are_recorded_for_python() {
    set_threads(1);
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let named = env::var_os("CALMIX_PLANNER_CASE").map(PathBuf::from);
    let folder = named.as_deref().unwrap_or(temporary.path());
    let settings = Settings { step: StepKind::Lean, ..settings(8) };
    let method = calibratemix(softmatch());
    let name = "SoftMatch, planned in Python";
    let case = Case { name, settings, method, rows: ROWS, steps: 10, at_a_time: 10 };
    let told = case.record(folder);
    let mixed = told.iter().filter(|told| !told.plan.mixes.is_empty()).count();
    assert_eq!(mixed, 8, "mixtures begin with the third step");
}

#[test]
fn single_steps_of_every_method() {
    set_threads(1);
    let mut peer = Peer::start();
    for (name, method) in every() {
        for &step in kinds(&method) {
            let settings = Settings { step, ..settings(8) };
            let case = Case { name, settings, method, rows: ROWS, steps: 5, at_a_time: 1 };
            let apart = case.compare(&mut peer);
            assert!(apart.largest() < 1e-4, "{name} {step:?}: {apart}");
        }
    }
}

/// A method that uses all rows or none, or mixes nothing, would not be tested.
fn something_was_decided(name: &str, apart: &Apart) {
    let weights: Vec<f32> = apart.told.iter().flat_map(|told| told.plan.pseudo.weights.clone()).collect();
    let below = weights.iter().filter(|&&weight| weight < 1.0).count();
    assert!(
        below > 0 && weights.iter().any(|&weight| weight > 0.5),
        "{name}: {below} rows weigh less than one"
    );
    let mixed = apart.told.iter().filter(|told| !told.plan.mixes.is_empty()).count();
    assert_eq!(mixed, 18, "{name}");
}
