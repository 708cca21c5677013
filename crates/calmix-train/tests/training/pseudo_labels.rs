//! The metrics of pseudo-labels in the events of a run.

use calmix_data::dataset::Dataset;
use calmix_data::split::LabelSplit;
use calmix_run::events::{Event, Step};
use calmix_run::read;
use calmix_run::tensor_files::predictions_file;
use calmix_testkit::run_bytes::bytes;

use crate::made::{Bench, steps};

/// As in other implementations, the unlabelled samples contain the labelled ones; the network has memorised these, so they are
/// not evaluated.
#[test]
fn labelled_samples_are_not_evaluated() {
    let bench = Bench::new();
    let settings = ["method.base=softmatch", "labels.validation=0"];
    let folder = bench.train("some", &[&settings[..], &["labels.count=6"]].concat());
    let evaluated: u64 = steps(&folder).iter().map(|step| step.pseudo.unwrap().samples).sum();
    // Twelve steps of twelve rows, of which about half are labelled samples too: the first epoch has 60 of 120.
    assert!((60..=84).contains(&evaluated), "{evaluated}");
    let all = bench.train("all", &[&settings[..], &["labels.keep=all"]].concat());
    let evaluated = |step: &Step| (step.impurity, step.impurity_of, step.pseudo) != (None, None, None);
    assert!(!steps(&all).iter().any(evaluated), "{:?}", steps(&all));
    assert_eq!(read::result(&all).unwrap().unwrap().finished.pseudo, None);
    assert!(steps(&all).iter().all(|step| step.utilisation.is_some()));
}

/// An event speaks of all steps since the one before.
#[test]
fn a_window_is_the_sum_of_its_steps() {
    let bench = Bench::new();
    let settings = ["method.base=softmatch", "method.mixup.pairing=all"];
    let each = steps(&bench.train("each", &settings));
    let windows = steps(&bench.train("windows", &[&settings[..], &["log.every=5"]].concat()));
    assert_eq!(windows.iter().map(|step| step.step).collect::<Vec<_>>(), [5, 10, 12]);
    for (window, steps) in windows.iter().zip([&each[..5], &each[5..10], &each[10..]]) {
        let pseudo = window.pseudo.unwrap();
        let sum = |of: fn(&Step) -> f64| steps.iter().map(of).sum::<f64>();
        let samples = sum(|step| step.pseudo.unwrap().samples as f64);
        assert_eq!(pseudo.samples as f64, samples);
        let mean = |of: fn(&Step) -> f64| {
            steps.iter().map(|step| of(step) * step.pseudo.unwrap().samples as f64).sum::<f64>() / samples
        };
        let close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        close(pseudo.error, mean(|step| step.pseudo.unwrap().error));
        close(pseudo.mean_confidence, mean(|step| step.pseudo.unwrap().mean_confidence));
        close(pseudo.confidence_gap, pseudo.mean_confidence - (1.0 - pseudo.error));
        assert!(pseudo.ece_15 >= pseudo.confidence_gap.abs() - 1e-12);
        // Both halves are as many; one of two wrong labels makes a mixture wrong.
        let of = window.impurity_of.unwrap();
        assert!(of.easy.is_some() && of.hard.is_some(), "{of:?}");
        assert_eq!(of.mixtures.is_some(), steps.iter().any(|step| step.mixes.is_some()), "{of:?}");
    }
}

/// The live network's labels of all unlabelled samples, which here are the test split as well: the files of that
/// evaluation know how many are wrong.
#[test]
fn final_pseudo_label_error_matches_the_network() {
    let bench = Bench::new();
    let settings = ["method.base=fixmatch", "dataset.test=train", "evaluate.online=true"];
    let folder = bench.train("run", &settings);
    let files = bytes(&folder);
    let predictions =
        predictions_file::from_bytes(&files["predictions/step-000000012-test-live.safetensors"]).unwrap();
    let dataset = Dataset::open(&folder.join("prepared"), &bench.data()).unwrap();
    let split = LabelSplit::read(&folder.join("split.json"), &dataset).unwrap();
    let (mut samples, mut wrong) = (0_u64, 0_u64);
    for ((id, &label), logits) in
        predictions.ids.iter().zip(&predictions.labels).zip(predictions.logits.chunks(10))
    {
        if !split.labelled().contains(id) && !split.validation().contains(id) {
            samples += 1;
            wrong += u64::from(calmix_core::softmax::argmax(logits) as u32 != label);
        }
    }
    let pseudo = read::result(&folder).unwrap().unwrap().finished.pseudo.unwrap();
    assert_eq!((pseudo.samples, pseudo.error), (samples, wrong as f64 / samples as f64));
    assert!(samples == 90 && wrong > 0, "{wrong} of {samples}");
    let Some(Event::Finished(finished)) = read::events(&folder).unwrap().pop() else { panic!("no end") };
    assert_eq!(finished.pseudo, Some(pseudo));
    let none = bench.train("none", &[&settings[..], &["evaluate.pseudo_labels=false"]].concat());
    assert_eq!(read::result(&none).unwrap().unwrap().finished.pseudo, None);
}

/// A loss of this size overflows in f16 until its factor is small.
#[test]
fn steps_that_overflow_are_counted() {
    let bench = Bench::new();
    // Asked for a CPU, a recipe refuses f16; here it runs wherever `auto` is.
    let settings = [
        "train.device=auto",
        "train.precision=f16",
        "method.base=softmatch",
        "method.unlabelled_weight=1000",
    ];
    let counts = |name: &str, every: &str| -> Vec<u64> {
        let folder = bench.train(name, &[&settings[..], &[every]].concat());
        steps(&folder).iter().map(|step| step.overflows.unwrap_or(0)).collect()
    };
    let (each, windows) = (counts("each", "log.every=1"), counts("windows", "log.every=5"));
    assert!(each[0] == 1 && each.iter().all(|&count| count <= 1), "{each:?}");
    let sums: Vec<u64> = each.chunks(5).map(|steps| steps.iter().sum()).collect();
    assert_eq!(windows, sums);
    let full = bench.train("full", &["train.precision=f32", "method.base=softmatch"]);
    assert!(steps(&full).iter().all(|step| step.overflows.is_none()));
}

/// Nothing averages pseudo-margins where no unlabelled sample is drawn, or where pairs are not guided by them.
#[test]
fn margins_are_kept_only_if_needed() {
    let bench = Bench::new();
    for (name, settings, rows) in [
        ("no unlabelled", &["method.base=supervised", "train.ratio=0"][..], 0),
        ("random", &["method.base=fixmatch", "method.mixup.pairing=random"], 0),
        ("none", &["method.base=fixmatch", "method.mixup.pairing=none"], 0),
        ("guided", &["method.base=fixmatch"], 110),
    ] {
        let files = bytes(&bench.train(name, settings));
        let file = &files["checkpoints/step-000000012/samples-0.safetensors"];
        let tensors = safetensors::SafeTensors::deserialize(file).unwrap();
        let kept: usize =
            tensors.iter().filter(|(name, _)| *name == "apm.values").map(|(_, of)| of.shape()[0]).sum();
        assert_eq!(kept, rows, "{name}");
    }
}
