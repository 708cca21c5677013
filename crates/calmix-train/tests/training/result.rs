//! The files of a finished run.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use calmix_data::dataset::Dataset;
use calmix_data::split::LabelSplit;
use calmix_lifecycle::request::RunRequest;
use calmix_lifecycle::start::{Draft, RunPlace, StartContext, prepare_run};
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::fitted_calibrator::{FittedCalibrator, FittedOn};
use calmix_metrics::predictions::{EvalModel, EvalSet};
use calmix_recipe::Selection;
use calmix_recipe::device::Device;
use calmix_run::events::Event;
use calmix_run::model_info::ModelInfo;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_testkit::run_bytes::bytes;
use calmix_train::trainer::{Outcome, Trainer, evaluate_run};

use crate::made::{Bench, layers, steps};

fn evaluations(folder: &Path) -> Vec<Evaluation> {
    let events = read::events(folder).unwrap();
    let found = events
        .into_iter()
        .filter_map(|event| if let Event::Evaluation(seen) = event { Some(*seen) } else { None });
    found.collect()
}

/// A run that drew its split again would read the list that has replaced the one it was prepared with.
#[test]
fn split_of_a_run_is_drawn_once() {
    let bench = Bench::new();
    let stop = AtomicBool::new(false);
    let prepare = |name: &str, settings: &[&str]| {
        let layers = layers(&bench.data(), settings).text(Path::new("mine.toml"), "");
        let draft = Draft::new(layers, || Device::Cpu).unwrap();
        prepare_run(&draft, &RunPlace::New(bench.folder(name)), StartContext::quiet(&stop)).unwrap()
    };
    let [first, second] = ["1", "2"].map(|seed| prepare(seed, &[&format!("labels.seed={seed}")]).split);
    assert_ne!(first.labelled(), second.labelled());
    let list = bench.folder("list.json");
    first.write(&list).unwrap();
    let prepared = prepare("run", &["labels.keep=given", &format!("labels.file={}", list.display())]);
    let table = prepared.dataset.folder().to_owned();
    fs::remove_file(&list).unwrap();
    second.write(&list).unwrap();
    assert!(matches!(
        Trainer::new(RunRequest::new(&stop)).start_prepared(prepared).unwrap(),
        Outcome::Finished(_)
    ));
    let dataset = Dataset::open(&table, &bench.data()).unwrap();
    let split = LabelSplit::read(&bench.folder("run").join("split.json"), &dataset).unwrap();
    let mut kept = [split.labelled(), split.validation()].concat();
    kept.sort_unstable();
    assert_eq!(kept, first.labelled());
}

#[test]
fn result_matches_evaluations_and_predictions() {
    let bench = Bench::new();
    let folder = bench.train("run", &["evaluate.online=true"]);
    let seen = evaluations(&folder);
    let of = |step| {
        seen.iter().filter(|seen| seen.step == step).map(|seen| (seen.split, seen.model)).collect::<Vec<_>>()
    };
    let all = [
        (EvalSet::Validation, EvalModel::Ema),
        (EvalSet::Test, EvalModel::Ema),
        (EvalSet::Validation, EvalModel::Live),
        (EvalSet::Test, EvalModel::Live),
    ];
    for step in [5, 10, 12] {
        assert_eq!(of(step), all);
    }
    for seen in &seen {
        assert_eq!(seen.intervals.is_some(), seen.step == 12);
        assert_eq!(seen.samples, if seen.split == EvalSet::Test { 40 } else { 10 });
    }
    // Ten held-out labels are enough to fit a temperature on.
    let calibrated = seen.last().unwrap().calibrated.as_ref().unwrap();
    assert_eq!((calibrated.fitted_on, calibrated.fitted_samples), (FittedOn::HeldOut, 10));

    let inspected = inspect::inspect(&folder).unwrap();
    let result = inspected.result.unwrap();
    assert_eq!((inspected.step, result.step, result.classes.len()), (Some(12), 12, 10));
    let last = &result.finished.selected[&Selection::Last];
    assert_eq!(
        (last.on, last.at_step, last.metrics),
        (EvalSet::Test, Some(12), seen[seen.len() - 3].metrics)
    );
    let files = bytes(&folder);
    for name in [
        "model.safetensors",
        "predictions/step-000000005-test-live.safetensors",
        "predictions/step-000000012-validation-ema.safetensors",
        "split.json",
        "environment.json",
    ] {
        assert!(files.contains_key(name), "{name}");
    }
    let (model, ema) = (&files["model.safetensors"], &files["checkpoints/step-000000012/ema.safetensors"]);
    assert_eq!(numbers(model), numbers(ema));
    // The file alone says what it is, but for the reference, which `calibrate` can write again.
    let info = read::model_info(&folder).unwrap();
    assert!(!info.reference.is_empty());
    let embedded = ModelInfo { reference: String::new(), ..info.clone() };
    assert_eq!(ModelInfo::embedded(model).unwrap(), Some(embedded));
    let held_out = info.held_out.unwrap();
    assert_eq!(held_out.len(), 10);

    // Evaluating the weights again gives the same metrics.
    let assessment = evaluate_run(&folder, None, None).unwrap();
    let ema: Vec<_> =
        seen.into_iter().filter(|seen| seen.step == 12 && seen.model == EvalModel::Ema).collect();
    let scaling = assessment.calibrator().and_then(FittedCalibrator::scaling);
    assert_eq!(read::model_info(&folder).unwrap().calibration.as_ref(), assessment.calibrator());
    assert_eq!((assessment.evaluations, scaling), (ema, result.scaling));
}

#[test]
fn best_model_is_the_result_if_selected() {
    let bench = Bench::new();
    // A learning rate that ruins the weights, so that the last model is not the best.
    let settings = ["selection=best-test", "optimiser.lr=0.6", "evaluate.every=2", "train.steps=16"];
    let folder = bench.train("run", &settings);
    let result = read::result(&folder).unwrap().unwrap();
    let best = &result.finished.selected[&Selection::BestTest];
    assert!(best.chosen_on_test);
    assert_eq!(best.at_step, Some(result.step));
    let errors: Vec<_> =
        evaluations(&folder).into_iter().filter(|seen| seen.split == EvalSet::Test).collect();
    let least = errors.iter().map(|seen| seen.metrics.error).fold(1.0, f64::min);
    assert_eq!(best.metrics.error, least);
    // Evaluated twice: during training, and at the end with intervals.
    let evaluated: Vec<_> = errors.iter().filter(|seen| seen.step == result.step).collect();
    assert_eq!(evaluated.last().unwrap().metrics, best.metrics);
    assert!(evaluated.last().unwrap().intervals.is_some());
    let assessment = evaluate_run(&folder, None, None).unwrap();
    assert_eq!(assessment.evaluations.last().unwrap(), *evaluated.last().unwrap());
    if result.step != 16 {
        let files = bytes(&folder);
        let (model, ema) =
            (&files["model.safetensors"], &files["checkpoints/step-000000016/ema.safetensors"]);
        assert_ne!(numbers(model), numbers(ema));
    }
}

#[test]
fn auto_settings_are_recorded_and_timing_is_separate() {
    let bench = Bench::new();
    let folder = bench.train(
        "run",
        &[
            "train.device=auto",
            "train.precision=auto",
            "train.threads=0",
            "log.tensorboard=true",
            "log.every=5",
        ],
    );
    let recipe = inspect::recipe(&folder).unwrap();
    assert!(recipe.value("train.device").unwrap().as_str().is_some_and(|device| device != "auto"));
    assert!(recipe.value("train.precision").unwrap().as_str().is_some_and(|precision| precision != "auto"));
    assert!(recipe.recipe.train.threads > 0);
    let timing = fs::read_to_string(folder.join("timing.jsonl")).unwrap();
    assert_eq!(timing.lines().count(), 3);
    assert_eq!(fs::read_dir(folder.join("tensorboard")).unwrap().count(), 1);
    assert_eq!(steps(&folder).len(), 3);
}

/// The numbers of a safetensors file, without its header.
fn numbers(file: &[u8]) -> &[u8] {
    let header = u64::from_le_bytes(*file.first_chunk().unwrap());
    &file[8 + header as usize..]
}
