//! What a step keeps in memory, and that nothing stays behind.
//!
//! One test, for both halves measure the whole process.

use calmix_core::plan::StepPlan;
use calmix_core::pseudo::Base;
use calmix_core::rng::Seed;
use calmix_dist::ProcessGroup;
use calmix_engine::engine::{Engine, Settings};
use calmix_recipe::step_kind::StepKind;
use calmix_testkit::{memory, tier};

use crate::methods::{calibratemix, plain, softmatch};
use crate::run::{Rows, Run, Views, settings};

#[test]
fn step_memory_is_bounded_and_released() {
    calmix_engine::device::set_threads(1);
    if memory::now().is_none() {
        return tier::skipped("this system does not report the memory of a process");
    }
    // First, while no freed memory waits to be used again.
    kept_for_the_gradient();
    let steps = if tier::is_exhaustive() { 2_000 } else { 1_000 };
    for kind in [StepKind::Concat, StepKind::Joint, StepKind::Lean] {
        nothing_stays_behind(kind, steps);
    }
}

/// What a pass with a gradient keeps, looked at between the two halves of a step.
///
/// WRN-10-1 at 32×32, numbers an image, in units of 16·32·32: the stem's output 1; the first block 1 + 1 + 1 + 1
/// (activated, after the first convolution, activated, its output); the second 1 (activated at full size) +
/// 3·½; the third ½ + 3·¼; the last activation ¼. Together 9. Kept twice, which is what a leaky ReLU out of place
/// does to BatchNorm's output, the seven activations would add 1 + 1 + 1 + ½ + ½ + ¼ + ¼ = 4½.
fn kept_for_the_gradient() {
    const IMAGES: usize = 256;
    const UNIT: usize = 16 * 32 * 32 * size_of::<f32>();
    // As bytes and as numbers.
    const IMAGE: usize = 3 * 32 * 32 * (1 + size_of::<f32>());
    let settings = settings(32);
    let mut engine = Engine::new(settings, Seed(1)).expect("an engine");
    let method = plain(Base::Supervised);
    let mut kept = 0.0;
    // The first pass brings in what libtorch keeps for good.
    for rows in [8, IMAGES] {
        let views = Views::at(0, Rows { labelled: rows, unlabelled: 0 }, &settings);
        let before = memory::now().unwrap_or(0);
        let observed = engine.observe(&method, &views.batch(), false).expect("an observation");
        kept = memory::now().unwrap_or(0).saturating_sub(before) as f64;
        let plan = StepPlan::default().into();
        engine.learn(&ProcessGroup::alone(), &method, observed, &plan, 0.01).expect("a step");
    }
    let needed = (IMAGES * (9 * UNIT + IMAGE)) as f64;
    // Libtorch's own buffers add an eighth; the second copies would add a half.
    assert!(kept < 1.3 * needed, "{kept} bytes kept, {needed} needed");
    assert!(kept > 0.75 * needed, "{kept} bytes kept, {needed} needed: this measure is broken");
}

/// The process is not a larger after the last step than after two hundred.
fn nothing_stays_behind(step: StepKind, steps: usize) {
    let settings = Settings { step, ..settings(4) };
    let mut run = Run::new(settings, calibratemix(softmatch()), Rows { labelled: 2, unlabelled: 2 });
    run.steps(200);
    let early = memory::now().unwrap_or(0);
    // By hundreds, for what the steps tell is kept as long as they run.
    for _ in 2..steps / 100 {
        run.steps(100);
    }
    let late = memory::now().unwrap_or(0);
    // What the allocator keeps comes and goes by a megabyte. 4,000 bytes per step show after a thousand steps, 2,000 do not
    // always.
    assert!(late < early + (512 << 10), "{step:?}: from {early} to {late} bytes");
}
