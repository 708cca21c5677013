//! Every method trains, and the same seed gives the same bytes.

use calmix_run::events::{Event, Step};
use calmix_run::read;
use calmix_testkit::run_bytes::differing;

use crate::made::{Bench, mixed_steps, steps};

/// Bases, with what makes them pay attention within a few steps.
const BASES: [&[&str]; 5] = [
    &["method.base=supervised", "train.ratio=0"],
    &["method.base=supervised", "labels.keep=all", "train.ratio=0"],
    &["method.base=fixmatch", "method.fixmatch.threshold=0.2"],
    &["method.base=flexmatch", "method.flexmatch.threshold=0.2"],
    &["method.base=softmatch"],
];

#[test]
fn every_method_trains_and_its_loss_falls() {
    let bench = Bench::new();
    let mut smoothings = ["none", "uniform", "other-classes"].into_iter().cycle();
    for (b, base) in BASES.iter().enumerate() {
        for pairing in ["none", "calibratemix", "all", "random", "crossed"] {
            let smoothing = smoothings.next().unwrap();
            let name = format!("{b}-{pairing}-{smoothing}");
            let settings =
                [format!("method.mixup.pairing={pairing}"), format!("method.smoothing={smoothing}")];
            let more =
                ["train.steps=24", "evaluate.every=24", "checkpoint.every=24", &settings[0], &settings[1]];
            let steps = steps(&bench.train(&name, &[base, &more[..]].concat()));
            assert_eq!(steps.len(), 24, "{name}");
            let mean = |steps: &[Step]| steps.iter().map(|s| f64::from(s.loss.labelled)).sum::<f64>() / 6.0;
            let (first, last) = (mean(&steps[..6]), mean(&steps[18..]));
            assert!(last < first, "{name}: from {first} to {last}");
            assert_eq!(steps.iter().any(|step| step.mixes.is_some()), pairing != "none", "{name}");
            let used = steps.iter().any(|step| step.utilisation.is_some_and(|used| used > 0.0));
            let known = steps.iter().any(|step| step.impurity.is_some());
            assert_eq!((used, known), (b >= 2, b >= 2), "{name}");
        }
    }
}

#[test]
fn both_readings_of_the_paper_are_reproducible() {
    let bench = Bench::new();
    for (name, settings) in [
        ("paper", &["method.base=flexmatch", "evaluate.online=true"][..]),
        ("lean", &["train.step=lean", "method.base=softmatch"]),
        ("released", &["preset=released-code", "method.mixup.start.step=3", "train.precision=bf16"]),
    ] {
        let first = bench.train(&format!("{name}-1"), settings);
        // Neither the number of workers nor what they have in memory changes a byte, except in the recipe.
        let workers = ["loader.workers=3", "loader.prefetch=5", "loader.memory=0"];
        let second = bench.train(&format!("{name}-2"), &[settings, &workers[..]].concat());
        let differing = differing(&first, &second);
        assert_eq!(
            differing,
            ["checkpoints/step-000000012/MANIFEST", "checkpoints/step-000000012/recipe.toml", "recipe.toml"],
            "{name}"
        );
        let mixed = mixed_steps(&first);
        assert!(mixed >= 8, "{name}: {mixed} steps with mixtures");
    }
    let other = bench.train("other", &["method.base=flexmatch", "evaluate.online=true", "train.seed=1"]);
    assert!(differing(&bench.folder("paper-1"), &other).contains(&"events.jsonl".to_owned()));
}

#[test]
fn supervised_training_loads_no_unlabelled_batch() {
    let bench = Bench::new();
    for pairing in ["none", "calibratemix", "all", "random", "crossed"] {
        let pairing_key = format!("method.mixup.pairing={pairing}");
        let supervised = ["method.base=supervised", &pairing_key];
        let run = |name: &str, ratio| {
            bench.train(&format!("{name}-{pairing}"), &[&supervised[..], &[ratio]].concat())
        };
        let (asked, none) = (run("asked", "train.ratio=2"), run("none", "train.ratio=0"));
        let steps = steps(&asked);
        assert!(steps.iter().all(|step| step.loss.unlabelled.is_none() && step.utilisation.is_none()));
        assert_eq!(steps.iter().any(|step| step.mixes.is_some()), pairing != "none");
        assert!(!differing(&asked, &none).contains(&"model.safetensors".to_owned()));
        let notes = read::events(&asked).unwrap();
        assert!(!notes.iter().any(|event| matches!(event, Event::Note(_))), "no starvation warning");
    }
}

#[test]
fn supervised_pseudo_mixup_is_a_separate_method() {
    let bench = Bench::new();
    let plain = bench.train("plain", &["method.base=supervised"]);
    let mixed = bench.train("mixed", &["method.base=supervised-pseudo-mixup"]);
    let steps = steps(&mixed);
    assert!(steps.iter().any(|step| step.mixes.is_some()));
    assert!(steps.iter().all(|step| step.utilisation.is_none()), "no row has a weight, so none is in use");
    assert!(differing(&plain, &mixed).contains(&"model.safetensors".to_owned()));
    let notes = read::events(&mixed).unwrap();
    assert!(!notes.iter().any(|event| matches!(event, Event::Note(_))), "no starvation warning");
}
