//! Half precisions: how far from f32 they are, and what happens when f16 overflows.

use calmix_core::plan::StepPlan;
use calmix_core::pseudo::Base;
use calmix_engine::engine::{EngineSnapshot, Settings, Weights};
use calmix_engine::optimiser::{LossScale, Sgd};
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::precision::Precision;
use safetensors::SafeTensors;

use crate::methods::{calibratemix, plain, softmatch};
use crate::run::{Rows, Run, settings};

/// Unit roundoff of bfloat16: eight bits with the hidden one.
const BF16: f64 = 1.0 / 256.0;

fn norm(numbers: &[f32]) -> f64 {
    numbers.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

fn difference(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Training logits, then the logits of evaluation, then the gradient: the momentum after one step without decay.
fn pass(network: &str, precision: Precision) -> [Vec<f32>; 3] {
    let settings = settings(32);
    let settings = Settings {
        model: ModelSpec { network: network.parse().expect("a network"), ..settings.model },
        classes: 10,
        precision,
        optimiser: Sgd { weight_decay: 0.0, ..Sgd::default() },
        ..settings
    };
    let mut run = Run::new(settings, plain(Base::Supervised), Rows { labelled: 16, unlabelled: 0 });
    let told = run.step().expect("a step");
    let momentum = run.engine.snapshot().expect("a snapshot").momentum;
    let file = SafeTensors::deserialize(&momentum).expect("a file");
    let mut names = file.names();
    names.sort_unstable();
    let gradient = names.into_iter().flat_map(|name| {
        let (numbers, _) = file.tensor(name).expect("named").data().as_chunks::<4>();
        numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect::<Vec<_>>()
    });
    let gradient = gradient.collect();
    let looked = run.engine.predict(&told.views.x, Weights::Trained).expect("logits").logits;
    [told.logits, looked, gradient]
}

/// Every activation is rounded to eight bits, by `BF16/√3` of itself in the root mean square at worst. A layer rounds
/// three times (convolution, norm, activation) and layers add their errors as independent ones do, so L layers put
/// logits off by `BF16·√L` of their spread.
///
/// The gradient changes more: of activations that are off by e, a share of 0.4·e is on the other side of zero (the
/// density of a normal at zero), where leaky ReLU's slope is 0.9 off. Over L layers with e growing to the above, that
/// is `√(0.4·0.9²·L·e/2)` of the gradient.
#[test]
fn bf16_is_f32_with_rounding() {
    calmix_engine::device::set_threads(1);
    for (network, layers) in [("wrn-10-2", 10.0_f64), ("wrn-28-2", 28.0)] {
        let [seen, looked, gradient] = pass(network, Precision::F32);
        let [seen16, looked16, gradient16] = pass(network, Precision::Bf16);
        let off = BF16 * layers.sqrt();
        for (what, got, wanted) in [("training", &seen16, &seen), ("evaluation", &looked16, &looked)] {
            let mean = wanted.iter().sum::<f32>() / wanted.len() as f32;
            let spread = norm(&wanted.iter().map(|z| z - mean).collect::<Vec<_>>());
            let apart = norm(&difference(got, wanted)) / spread;
            assert!(apart > 0.0 && apart < off, "{network} {what}: {apart} of {off}");
        }
        let turned = (0.4 * 0.81 * layers * off / 2.0).sqrt();
        let apart = norm(&difference(&gradient16, &gradient)) / norm(&gradient);
        assert!(apart < turned, "{network} gradient: {apart} of {turned}");
        let product: f64 = gradient16.iter().zip(&gradient).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let cosine = product / (norm(&gradient16) * norm(&gradient));
        let longer = norm(&gradient16) / norm(&gradient) - 1.0;
        // What is apart by t at random turns by t, which costs t²/2 of the cosine, and is longer by as much.
        assert!(cosine > 1.0 - turned.powi(2) / 2.0, "{network} gradient: cosine {cosine}");
        assert!(longer.abs() < turned.powi(2) / 2.0, "{network} gradient: longer by {longer}");
    }
}

/// Evaluation runs in f32 whatever the training precision: the same weights give the same outputs, to the last bit.
#[test]
fn evaluation_is_in_f32() {
    calmix_engine::device::set_threads(1);
    let rows = Rows { labelled: 2, unlabelled: 2 };
    let mut full = Run::new(settings(8), calibratemix(softmatch()), rows);
    let views = full.step().expect("a step").views;
    let weights = full.engine.snapshot().expect("a snapshot");
    for precision in [Precision::Bf16, Precision::F16] {
        let half = Settings { precision, ..settings(8) };
        let mut half = Run::new(half, calibratemix(softmatch()), rows).engine;
        half.restore(&weights).expect("the same network");
        for which in [Weights::Trained, Weights::Ema] {
            let [said, wanted] = [&half, &full.engine].map(|of| of.predict(&views.x, which).expect("logits"));
            assert_eq!(said, wanted, "{precision:?} {which:?}");
        }
    }
}

#[test]
fn f16_skips_only_steps_that_overflow() {
    calmix_engine::device::set_threads(1);
    let settings = Settings { precision: Precision::F16, ..settings(4) };
    let rows = Rows { labelled: 2, unlabelled: 2 };
    let mut run = Run::new(settings, calibratemix(softmatch()), rows);
    let full = Settings { precision: Precision::F32, ..settings };
    let full = Run::new(full, calibratemix(softmatch()), rows).step().expect("a step").output;
    let before = run.engine.snapshot().expect("a snapshot");

    // A weight that makes a gradient of half precision overflow at any large scale of the loss.
    let huge = |_, plan: &mut StepPlan| plan.pseudo.weights.fill(1e4);
    let left_out = run.step_with(huge).expect("no error, for a smaller scale may help").output;
    assert!(!left_out.updated && !left_out.gradient_norm.is_finite(), "{left_out:?}");
    // Eleven bits, otherwise as for bf16.
    let off = 10.0_f64.sqrt() / 2048.0;
    assert!((left_out.losses[0] / full.losses[0] - 1.0).abs() < off, "{left_out:?} {full:?}");
    let after = run.engine.snapshot().expect("a snapshot");
    assert_eq!(after.loss_scale, LossScale { factor: 32_768.0, held: 0, dynamic: true });
    assert!(EngineSnapshot { loss_scale: before.loss_scale, ..after.clone() } == before, "something moved");

    let taken = (0..16).map(|_| run.step().expect("a step").output).find(|output| output.updated);
    assert!(taken.as_ref().is_some_and(|output| output.gradient_norm.is_finite()), "{taken:?}");
    let moved = run.engine.snapshot().expect("a snapshot");
    assert!(moved.loss_scale.held == 1 && moved.weights != after.weights && moved.ema != after.ema);
}

#[test]
fn bf16_and_f32_have_no_scale() {
    for precision in [Precision::F32, Precision::Bf16] {
        let settings = Settings { precision, ..settings(4) };
        let mut run = Run::new(settings, plain(Base::Supervised), Rows { labelled: 2, unlabelled: 0 });
        assert!(run.step().expect("a step").output.updated);
        assert_eq!(run.engine.snapshot().expect("a snapshot").loss_scale, LossScale::ONE);
    }
}
