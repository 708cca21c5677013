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
        // Counted over the pairs of all steps, so it lies between those of the steps.
        let of_steps: Vec<f64> = steps.iter().filter_map(|step| Some(step.margin_auroc?.average)).collect();
        let lowest = of_steps.iter().copied().fold(1.0, f64::min);
        let highest = of_steps.iter().copied().fold(0.0, f64::max);
        let auroc = window.margin_auroc.unwrap().average;
        assert!(lowest - 1e-12 <= auroc && auroc <= highest + 1e-12, "{auroc} {of_steps:?}");
    }
}

/// After one visit to every sample the average margin is 0.997 of the current one, which orders rows alike; later they differ.
#[test]
fn average_and_current_margins_differ_after_many_visits() {
    let bench = Bench::new();
    let settings = ["method.base=softmatch", "train.steps=60", "log.every=1"];
    let differing = |name: &str, more: &[&str]| -> Vec<u64> {
        let steps = steps(&bench.train(name, &[&settings[..], more].concat()));
        let differs = |step: &&Step| step.margin_auroc.is_some_and(|auroc| auroc.average != auroc.current);
        steps.iter().filter(differs).map(|step| step.step).collect()
    };
    let averaged = differing("average", &[]);
    // 110 samples at 12 a step.
    assert!(averaged.len() > 30 && averaged[0] > 9, "{averaged:?}");
    let exponential = ["method.mixup.guidance.averaging=exponential", "method.mixup.guidance.rho=0"];
    // A batch in which one epoch ends and the next begins may have a sample twice, with the margin of its last row.
    let current = differing("current", &exponential);
    assert!(current.len() < 6, "{current:?}");
}

#[test]
fn visits_are_those_of_the_margins() {
    let bench = Bench::new();
    let folder = bench.train("run", &["method.base=softmatch"]);
    let visits = read::result(&folder).unwrap().unwrap().visits.unwrap();
    let files = bytes(&folder);
    let file = &files["checkpoints/step-000000012/samples-0.safetensors"];
    let tensors = safetensors::SafeTensors::deserialize(file).unwrap();
    let counts = tensors.tensor("apm.visits").unwrap();
    let counts: Vec<u32> =
        counts.data().as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
    let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    assert_eq!(visits.all, mean);
    let mixed = steps(&folder).iter().find(|step| step.mixes.is_some()).unwrap().step;
    assert_eq!(visits.before_mixing, Some(mean * (mixed - 1) as f64 / 12.0));
    let none = bench.train("none", &["method.base=softmatch", "method.mixup.pairing=none"]);
    let visits = read::result(&none).unwrap().unwrap().visits.unwrap();
    assert_eq!((visits.all, visits.before_mixing), (mean, None));
    let labels = bench.train("labels", &["method.base=supervised", "train.ratio=0"]);
    assert_eq!(read::result(&labels).unwrap().unwrap().visits, None);
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
