//! The same run twice has the same bits, and so has one that was interrupted.

use calmix_core::method::{BaseLoss, Method};
use calmix_core::planner::Planner;
use calmix_engine::engine::{EngineSnapshot, Settings};
use calmix_recipe::precision::Precision;
use calmix_recipe::step_kind::StepKind;

use crate::methods::{calibratemix, every, softmatch};
use crate::run::{Rows, Run, settings};

const ROWS: Rows = Rows { labelled: 4, unlabelled: 8 };

fn end(run: &Run) -> (EngineSnapshot, Planner, u64) {
    (run.engine.snapshot().expect("a snapshot"), run.planner.clone(), run.step)
}

/// Fifty steps; the first `repeated` of them again; and the last twenty-five after a restart.
fn three_ways(name: &str, settings: Settings, method: Method, repeated: usize) {
    let mut whole = Run::new(settings, method, ROWS);
    let start = end(&whole).0;
    whole.steps(25);
    let middle = end(&whole);
    whole.steps(25);
    let wanted = end(&whole);
    assert!(start.weights != middle.0.weights && middle.0.weights != wanted.0.weights, "{name}: it learns");

    let mut again = Run::new(settings, method, ROWS);
    again.steps(repeated);
    assert!(end(&again) == *if repeated == 50 { &wanted } else { &middle }, "{name}: the same run twice");

    let mut resumed = Run::new(settings, method, ROWS);
    // Not fresh: nothing of a new engine may stand in for what a snapshot lacks.
    resumed.steps(3);
    resumed.engine.restore(&middle.0).expect("its own snapshot");
    (resumed.planner, resumed.step) = (middle.1, middle.2);
    assert!(end(&resumed).0 == middle.0, "{name}: a snapshot of a snapshot");
    resumed.steps(25);
    assert!(end(&resumed) == wanted, "{name}: resumed half-way");
}

#[test]
fn every_method_repeats_and_resumes_bit_for_bit() {
    calmix_engine::device::set_threads(1);
    for (name, method) in every() {
        for step in [StepKind::Concat, StepKind::Joint, StepKind::Lean] {
            if step != StepKind::Joint && method.base_loss == BaseLoss::Twice {
                continue;
            }
            three_ways(&format!("{name} {step:?}"), Settings { step, ..settings(4) }, method, 25);
        }
    }
}

/// Where an order of sums could be left to chance. The images are large enough for libtorch to share them out.
#[test]
fn two_threads_repeat_and_resume_bit_for_bit_in_f32_and_bf16() {
    calmix_engine::device::set_threads(2);
    for precision in [Precision::F32, Precision::Bf16] {
        for step in [StepKind::Concat, StepKind::Joint, StepKind::Lean] {
            let settings = Settings { precision, step, ..settings(8) };
            three_ways(&format!("{precision:?} {step:?}"), settings, calibratemix(softmatch()), 50);
        }
    }
}

/// What processes compare of each other's weights.
#[test]
fn changed_weight_bit_changes_the_hash() {
    calmix_engine::device::set_threads(1);
    let mut run = Run::new(settings(4), calibratemix(softmatch()), ROWS);
    run.steps(2);
    let (snapshot, digest) = (end(&run).0, run.engine.digest().expect("a digest"));
    let mut other = Run::new(settings(4), calibratemix(softmatch()), ROWS);
    assert_ne!(other.engine.digest().expect("a digest"), digest);
    other.engine.restore(&snapshot).expect("a snapshot");
    assert_eq!(other.engine.digest().expect("a digest"), digest);
    let parts: [fn(&mut EngineSnapshot) -> &mut Vec<u8>; 2] =
        [|kept| &mut kept.weights, |kept| &mut kept.momentum];
    for of in parts {
        let mut flipped = snapshot.clone();
        // The last bytes of a file are numbers.
        let at = of(&mut flipped).len() - 3;
        of(&mut flipped)[at] ^= 1;
        other.engine.restore(&flipped).expect("a snapshot");
        assert_ne!(other.engine.digest().expect("a digest"), digest);
    }
}
