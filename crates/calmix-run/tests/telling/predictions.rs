//! Every number can be rebuilt from the file of predictions.

use std::path::Path;
use std::process::Command;

use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use calmix_io::error::FileProblem;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::evaluate::{EvaluatedBy, Evaluation, evaluate};
use calmix_metrics::fitted_calibrator::{FittedCalibrator, FittedOn};
use calmix_metrics::metrics::{Metrics, Resampling};
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_run::events::Event;
use calmix_run::read;
use calmix_run::tensor_files::predictions_file;
use serde_json::Value;

use super::made;
use super::tensorboard::python;

/// Mean confidence, its gap, ECE, reliability bins and accuracy by class, by NumPy from the files of predictions.
#[test]
fn numpy_finds_the_same_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/telling/metrics.py");
    let mut command = Command::new(python());
    command.arg(script);
    let mut expected = Vec::new();
    for step in 0..40 {
        let mut predictions = made::predictions(step, EvalSet::Test, EvalModel::Ema);
        if step % 4 == 0 {
            // A class that no sample has.
            predictions.labels.iter_mut().filter(|label| **label == 3).for_each(|label| *label = 5);
        }
        let temperature = 0.5 + 0.1 * step as f64;
        let map = made::temperature(temperature, FittedOn::HeldOut);
        let seen = evaluate(&predictions, Some(&map), None).unwrap();
        let path = folder.path().join(step.to_string());
        std::fs::write(&path, predictions_file::to_bytes(&predictions).unwrap()).unwrap();
        let scaled = seen.calibrated.unwrap();
        assert_eq!(scaled.evaluated_by, EvaluatedBy::OtherLabels);
        for (temperature, metrics, bins) in
            [(1.0, seen.metrics, seen.bins), (temperature, scaled.metrics, scaled.bins)]
        {
            command.arg(&path).arg(temperature.to_string());
            expected.push((metrics, bins, seen.class_accuracy.clone()));
        }
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found.len(), expected.len());
    // Softmax in f64 on both sides, of logits below 10: a relative error of a few units of 2⁻⁵³, and sums of 60 numbers.
    let close = |found: &Value, wanted: f64| {
        let found = found.as_f64().unwrap();
        assert!((found - wanted).abs() < 1e-13, "{found} {wanted}");
    };
    for (found, (metrics, bins, class_accuracy)) in found.iter().zip(expected) {
        close(&found["error"], metrics.error);
        close(&found["mean_confidence"], metrics.mean_confidence);
        close(&found["confidence_gap"], metrics.confidence_gap);
        close(&found["ece_15"], metrics.ece_15);
        assert_eq!((bins.len(), class_accuracy.len()), (15, 7));
        for (found, bin) in found["bins"].as_array().unwrap().iter().zip(bins) {
            assert_eq!(found[2], bin.count);
            for (at, wanted) in [(0, bin.lower), (1, bin.upper), (3, bin.confidence), (4, bin.accuracy)] {
                close(&found[at], wanted);
            }
        }
        for (found, wanted) in found["class_accuracy"].as_array().unwrap().iter().zip(class_accuracy) {
            assert_eq!(found.is_null(), wanted.is_none());
            if let Some(wanted) = wanted {
                close(found, wanted);
            }
        }
    }
}

#[test]
fn the_file_rebuilds_every_metric_of_the_event() {
    let events = made::events();
    let mut rebuilt = 0;
    for event in &events {
        let Event::Evaluation(evaluation) = event else { continue };
        let bytes = predictions_file::to_bytes(&made::predictions(
            evaluation.step,
            evaluation.split,
            evaluation.model,
        ))
        .unwrap();
        let kept = predictions_file::from_bytes(&bytes).unwrap();
        let temperature = evaluation.calibrated.as_ref().and_then(|calibrated| calibrated.temperature);
        let map = temperature.map(|temperature| made::temperature(temperature.value(), FittedOn::HeldOut));
        let how = evaluation.intervals.map(|intervals| Resampling {
            replicates: intervals.replicates as usize,
            level: intervals.level,
        });
        let again = evaluate(&kept, map.as_ref(), how.map(|how| (how, Seed(3)))).unwrap();
        assert_eq!(Event::Evaluation(Box::new(again)), *event);
        rebuilt += 1;
    }
    assert_eq!(rebuilt, 6);
}

/// The split that a calibrator was fitted on is evaluated by calibrators that were fitted without each of its labels.
#[test]
fn calibration_labels_do_not_evaluate_their_calibrator() {
    let predictions = made::predictions(5, EvalSet::Validation, EvalModel::Ema);
    let fitted = FittedCalibrator::fit(&predictions, FittedOn::HeldOut, &|| false).unwrap();
    let own = evaluate(&predictions, Some(&fitted), None).unwrap().calibrated.unwrap();
    // Files of models keep their bytes, so that a calibrator has no means over classes.
    let kept = Metrics { balanced_error: None, macro_f1: None, ..own.metrics };
    assert_eq!((own.evaluated_by, kept), (EvaluatedBy::CrossFit, fitted.calibrated));
    assert!(own.metrics.balanced_error.is_some() && own.metrics.macro_f1.is_some());
    let other = Predictions { split: EvalSet::Test, ..predictions.clone() };
    let flattered = evaluate(&other, Some(&fitted), None).unwrap().calibrated.unwrap();
    assert_eq!(flattered.evaluated_by, EvaluatedBy::OtherLabels);
    assert!(flattered.metrics.nll < own.metrics.nll, "{flattered:?} {own:?}");
}

#[test]
fn metrics_are_those_of_the_logits() {
    let predictions = made::predictions(5, EvalSet::Test, EvalModel::Ema);
    let seen = evaluate(&predictions, None, None).unwrap();
    let logits = Matrix::new(&predictions.logits, 60, 7).unwrap();
    assert_eq!(seen.metrics, Metrics::of(logits, &predictions.labels, Temperature::IDENTITY).unwrap());
    assert_eq!((seen.samples, seen.intervals, seen.calibrated), (60, None, None));
}

#[test]
fn models_and_temperatures_are_chosen_on_the_same_draws() {
    let how = Some((Resampling::default(), Seed(3)));
    let ema = made::predictions(5, EvalSet::Test, EvalModel::Ema);
    let live = Predictions { model: EvalModel::Live, ..ema.clone() };
    let other_split = Predictions { split: EvalSet::Validation, ..ema.clone() };
    let other_step = Predictions { step: 6, ..ema.clone() };
    let nll = |predictions: &Predictions| evaluate(predictions, None, how).unwrap().intervals.unwrap().nll;
    assert_eq!(nll(&ema), nll(&live));
    assert_ne!(nll(&ema), nll(&other_split));
    assert_ne!(nll(&ema), nll(&other_step));
}

#[test]
fn the_bytes_are_the_same_every_time() {
    let predictions = made::predictions(5, EvalSet::Test, EvalModel::Live);
    let bytes = predictions_file::to_bytes(&predictions).unwrap();
    for _ in 0..20 {
        assert_eq!(predictions_file::to_bytes(&predictions).unwrap(), bytes);
    }
    assert_eq!(predictions_file::from_bytes(&bytes).unwrap(), predictions);
}

#[test]
fn a_file_cut_short_or_changed_is_refused() {
    let predictions = made::predictions(5, EvalSet::Test, EvalModel::Live);
    let bytes = predictions_file::to_bytes(&predictions).unwrap();
    for end in 0..bytes.len() {
        assert!(predictions_file::from_bytes(&bytes[..end]).is_err(), "{end}");
    }
    let replaced = |from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        let changed = [&bytes[..at], to, &bytes[at + from.len()..]].concat();
        predictions_file::from_bytes(&changed).unwrap_err().to_string()
    };
    assert_eq!(
        replaced(b"\"U32\"", b"\"I32\""),
        "this is not a file of predictions: `labels` is I32 [60], not U32 [60]; it may be cut short: evaluate the checkpoint \
         again"
    );
    assert!(replaced(b"\"labels\"", b"\"lapels\"").contains("labels"));
    assert!(replaced(b"class 6\\\"]", b"class 6\\\"}").contains("metadata"));
}

#[test]
fn file_name_has_step_split_and_model() {
    let name = predictions_file::file_name(120, EvalSet::Validation, EvalModel::Live);
    assert_eq!(name, "step-000000120-validation-live.safetensors");
}

/// Logits of four bytes, a label of four and an id of eight for each sample, and sixteen kilobytes for the name of a class.
#[test]
fn size_limit_grows_with_samples_and_classes() {
    let predictions = made::predictions(5, EvalSet::Test, EvalModel::Ema);
    let length = predictions_file::to_bytes(&predictions).unwrap().len() as u64;
    assert!(length <= predictions_file::max_bytes(60, 7));
    let of_samples = predictions_file::max_bytes(1_000, 7) - predictions_file::max_bytes(0, 7);
    // Logits, a label, an id and a group.
    assert_eq!(of_samples, 1_000 * (4 * 7 + 4 + 8 + 4));
    let of_classes = predictions_file::max_bytes(0, 7) - predictions_file::max_bytes(0, 0);
    assert_eq!(of_classes, 7 * 16 * 1_024);
    assert_eq!(predictions_file::max_bytes(0, 0), 64 * 1_024);
    assert_eq!(predictions_file::max_bytes(u64::MAX, usize::MAX), u64::MAX, "it does not overflow");
}

#[test]
fn groups_are_in_the_file() {
    let alone = made::predictions(5, EvalSet::Test, EvalModel::Ema);
    let groups: Vec<u32> = (0..60).map(|row| row / 2).collect();
    let grouped = Predictions { groups, ..alone.clone() };
    let bytes = predictions_file::to_bytes(&grouped).unwrap();
    assert_eq!(predictions_file::from_bytes(&bytes).unwrap(), grouped);
    // Without groups the file is as it was before there were any.
    let bytes = predictions_file::to_bytes(&alone).unwrap();
    assert!(!bytes.windows(6).any(|name| name == b"groups"));
    assert_eq!(predictions_file::from_bytes(&bytes).unwrap(), alone);
}

#[test]
fn contradictions_are_not_written() {
    let predictions = made::predictions(5, EvalSet::Test, EvalModel::Live);
    let refused =
        |predictions: Predictions| predictions_file::to_bytes(&predictions).unwrap_err().to_string();
    let refusal_of = |change: fn(&mut Predictions)| {
        let mut predictions = predictions.clone();
        change(&mut predictions);
        refused(predictions)
    };
    assert!(refusal_of(|predictions| predictions.groups.push(1)).contains("groups"));
    assert!(refusal_of(|predictions| predictions.ids.truncate(59)).ends_with("59 ids and 60 labels"));
    assert!(refusal_of(|predictions| predictions.logits.truncate(5)).contains("60 samples of 7 classes"));
    assert!(refusal_of(|predictions| predictions.labels[3] = 7).ends_with("row 3 has label 7, of 7 classes"));
}

/// The folder of a run with a summary, and predictions of `times` sixty samples in it.
fn run_with_predictions(folder: &Path, times: usize) -> Evaluation {
    let mut predictions = made::predictions(10, EvalSet::Validation, EvalModel::Ema);
    let seen = evaluate(&predictions, None, None).unwrap();
    predictions.ids = predictions.ids.repeat(times);
    predictions.labels = predictions.labels.repeat(times);
    predictions.logits = predictions.logits.repeat(times);
    std::fs::write(folder.join("summary.json"), serde_json::to_vec(&made::summary()).unwrap()).unwrap();
    std::fs::create_dir_all(folder.join("predictions")).unwrap();
    let name = predictions_file::file_name(10, EvalSet::Validation, EvalModel::Ema);
    std::fs::write(folder.join("predictions").join(name), predictions_file::to_bytes(&predictions).unwrap())
        .unwrap();
    seen
}

#[test]
fn predictions_with_too_many_samples_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let seen = run_with_predictions(folder.path(), 1);
    assert_eq!(read::predictions_of(folder.path(), &seen).unwrap().unwrap().labels.len(), 60);
    let seen = run_with_predictions(folder.path(), 1_000);
    let error = read::predictions_of(folder.path(), &seen).unwrap_err();
    assert!(matches!(error.problem, FileProblem::Limit(_)), "{error}");
    // An event may claim as many: the run has sixty held-out samples.
    let claimed = Evaluation { samples: 60_000, ..seen };
    assert!(read::predictions_of(folder.path(), &claimed).is_err());
}
