//! Heads against PyTorch: the gradient of single steps by autograd, and 200 steps of its optimiser.

mod peer;

use crate::scene;
use calmix_core::loss::LogitPenalty;
use calmix_core::method::Method;
use calmix_core::method::smoothing::Smoothing;
use calmix_core::mixup::{MixLoss, Mixup, Pairing, PseudoTarget};
use calmix_core::preset;
use calmix_core::pseudo::{Base, FixMatch, FlexMatch, FreeMatch, Mapping, PseudoLabels, SoftMatch};
use calmix_core::schedule::Start;
use calmix_head::settings::HeadSettings;
use calmix_head::training::Training;
use serde_json::{Value, json};

use crate::scene::{Scene, settings};
use peer::{Apart, Peer};

const STEPS: u64 = 200;

fn compare(peer: &mut Peer, method: Method, hidden: Option<usize>) -> Apart {
    let scene = Scene::new(4);
    // With a hidden layer, large steps are chaotic: the last bit of a sum grows until it switches another unit off.
    let lr = if hidden.is_some() { 0.1 } else { 1.0 };
    let settings =
        HeadSettings { hidden, lr, clip: Some(0.6), steps: STEPS, weight_decay: 1e-3, ..settings(method) };
    let rows = scene.rows(settings.unlabelled_batch > 0);
    let mut training = Training::new(scene.samples(), &rows, &settings).expect("a head");
    let mut tensors: Vec<(String, Vec<f32>, usize)> = Vec::new();
    let mut steps = Vec::new();
    let width = scene.samples().width();
    for step in 0..STEPS {
        tensors.push((format!("weights.{step}"), training.weights().numbers().to_vec(), 0));
        let log = training.step(step).expect("a step");
        let trace = training.last();
        let PseudoLabels { labels, weights, fairness_target } = &trace.plan.pseudo;
        steps.push(json!({
            "rate": log.rate,
            "labels": training.last_labels(),
            "pseudo": { "labels": labels, "weights": weights, "fairness_target": fairness_target },
            "targets": trace.plan.targets,
            "mix_weights": trace.plan.mixes.iter().map(|mix| mix.weight).collect::<Vec<_>>(),
        }));
        tensors.push((format!("inputs.{step}"), trace.inputs.clone(), width));
        tensors.push((format!("gradient.{step}"), trace.gradient.clone(), 0));
    }
    let mixed = steps.iter().filter(|step| step["mix_weights"] != json!([])).count();
    assert_eq!(mixed > 0, method.mixup().is_some(), "{mixed} steps with mixtures");
    tensors.push(("live".to_owned(), training.weights().numbers().to_vec(), 0));
    tensors.push(("average".to_owned(), training.ema().numbers().to_vec(), 0));
    peer.replay(&case(&settings, width, &steps), &tensors)
}

fn case(settings: &HeadSettings, width: usize, steps: &[Value]) -> Value {
    let method = &settings.method;
    let smoothing = match method.smoothing {
        Smoothing::None => 0.0,
        Smoothing::Uniform(epsilon) => epsilon,
        Smoothing::OtherClasses(_) => panic!("PyTorch has no such smoothing"),
    };
    json!({
        "width": width,
        "hidden": settings.hidden,
        "classes": scene::CLASSES,
        "smoothing": smoothing,
        "unlabelled_weight": method.unlabelled_weight,
        "fairness_weight": if let Base::FreeMatch(rule) = method.base { rule.fairness } else { 0.0 },
        "logit_weight": method.logit_penalty.weight,
        "logit_margin": Some(method.logit_penalty).filter(|rule| rule.weight > 0.0).map(|rule| rule.margin),
        "mix_weight": method.mixup.weight,
        "binary": method.mixup().is_some_and(|mixup| mixup.loss == MixLoss::BinaryCrossEntropy),
        "momentum": settings.momentum,
        "nesterov": settings.nesterov,
        "weight_decay": settings.weight_decay,
        "clip": settings.clip,
        "ema_decay": settings.ema_decay,
        "steps": steps,
    })
}

/// Every base algorithm, with parameters that lead to mixed decisions in the first steps.
fn bases() -> [(&'static str, Base); 5] {
    [
        ("supervised", Base::Supervised),
        ("FixMatch", Base::FixMatch(FixMatch { threshold: 0.45 })),
        (
            "FlexMatch",
            Base::FlexMatch(FlexMatch { threshold: 0.8, mapping: Mapping::Linear, ..FlexMatch::default() }),
        ),
        ("SoftMatch", Base::SoftMatch(SoftMatch { momentum: 0.9, ..SoftMatch::default() })),
        ("FreeMatch", Base::FreeMatch(FreeMatch { momentum: 0.9, fairness: 0.1, ..FreeMatch::default() })),
    ]
}

/// No mixup, random pairs, CalibrateMix with hard and with soft targets, crossed pairs.
fn mixups(base: Base) -> Vec<(&'static str, Method)> {
    let paper = preset::paper(base);
    let begun = |mixup: Mixup| Method { mixup: Mixup { start: Start::at(2), ..mixup }, ..paper };
    let soft = begun(Mixup { pseudo_target: PseudoTarget::Soft, ..paper.mixup });
    vec![
        ("none", paper.without_mixup()),
        ("random", begun(Mixup { pairing: Pairing::Random, ..paper.mixup })),
        ("hard", begun(paper.mixup)),
        ("soft", soft),
        ("crossed", begun(Mixup { pairing: Pairing::Crossed, ..paper.mixup })),
    ]
}

fn check(peer: &mut Peer, name: &str, method: Method, hidden: Option<usize>) {
    let apart = compare(peer, method, hidden);
    eprintln!("{name}, hidden {hidden:?}: {apart:?}");
    assert!(apart.kinks <= 20.0, "{name}: {apart:?}");
    assert!(apart.gradient <= 1e-5, "{name}: {apart:?}");
    assert!(apart.live <= 1e-3 && apart.average <= 1e-3, "{name}: {apart:?}");
}

#[test]
fn every_base_and_mixup_of_a_linear_head() {
    let mut peer = Peer::start();
    for (name, base) in bases() {
        for (mixup, method) in mixups(base) {
            check(&mut peer, &format!("{name}, {mixup}"), method, None);
        }
    }
}

#[test]
fn every_base_and_mixup_of_a_hidden_layer() {
    let mut peer = Peer::start();
    for (name, base) in bases() {
        for (mixup, method) in mixups(base) {
            check(&mut peer, &format!("{name}, {mixup}"), method, Some(256));
        }
    }
}

#[test]
fn penalty_smoothing_and_binary_loss() {
    let mut peer = Peer::start();
    let [_, _, _, _, (_, freematch)] = bases();
    let [_, _, (_, calibratemix), ..] = mixups(freematch)[..] else { panic!("five kinds") };
    let penalised = Method { logit_penalty: LogitPenalty { weight: 0.3, margin: 0.2 }, ..calibratemix };
    check(&mut peer, "penalty", penalised, None);
    check(&mut peer, "smoothing", Method { smoothing: Smoothing::Uniform(0.1), ..calibratemix }, Some(256));
    let binary = Mixup { loss: MixLoss::BinaryCrossEntropy, weight: 0.5, ..calibratemix.mixup };
    check(&mut peer, "binary", Method { mixup: binary, ..calibratemix }, None);
}
