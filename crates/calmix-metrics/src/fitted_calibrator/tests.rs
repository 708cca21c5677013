use std::cell::Cell;

use calmix_core::rng::{Domain, Seed};

use super::*;
use crate::evaluate::evaluate_unless;
use crate::predictions::EvalModel;

fn predictions(classes: usize, labels: Vec<u32>, logits: Vec<f32>) -> Predictions {
    Predictions {
        step: 1,
        split: EvalSet::Validation,
        model: EvalModel::Ema,
        classes: (0..classes).map(|class| class.to_string()).collect(),
        ids: (0..labels.len() as u64).collect(),
        labels,
        logits,
        groups: Vec::new(),
    }
}

/// Margins of 6, every fourth of them wrong: the likeliest temperature is 6 / ln 3.
fn confident_predictions(n: usize, period: usize) -> Predictions {
    let labels = (0..n).map(|i| u32::from(i % period == period - 1)).collect();
    predictions(2, labels, [6.0, 0.0].repeat(n))
}

/// Logits of four classes that were too sure by a factor of three; the first class is favoured by `favour`.
fn favoured(n: usize, favour: f32) -> Predictions {
    let mut stream = Seed(2).stream(Domain::Split, 0, 0);
    let mut logits = Vec::new();
    let mut labels = Vec::new();
    for _ in 0..n {
        let row: Vec<f32> = (0..4).map(|_| 1.5 * stream.normal() as f32).collect();
        let mut p = [0.0; 4];
        Temperature::IDENTITY.probabilities_into(&row, &mut p);
        let mut u = stream.uniform() as f32;
        let label = p.iter().position(|p| {
            u -= p;
            u < 0.0
        });
        labels.push(label.unwrap_or(3) as u32);
        logits
            .extend(row.iter().enumerate().map(|(class, z)| 3.0 * z + if class == 0 { favour } else { 0.0 }));
    }
    predictions(4, labels, logits)
}

#[test]
fn ten_held_out_labels_are_enough() {
    let fit = |held_out: usize| {
        let held_out = confident_predictions(held_out, 4);
        Fitted::of(Some((&held_out, FittedOn::HeldOut)), Some(&confident_predictions(40, 4)), &|| false)
            .unwrap()
            .calibrator()
            .unwrap()
            .clone()
    };
    let few = fit(9);
    let enough = fit(10);
    assert_eq!((few.fitted_on, few.samples), (FittedOn::LabelledCrossFit, 40));
    assert_eq!((enough.fitted_on, enough.samples), (FittedOn::HeldOut, 10));
    assert_eq!((enough.rule, enough.tried.len(), enough.changed_labels), (FitRule::PenalisedNll, 1, 0));
    assert!(enough.scaling().unwrap().temperature.value() > 1.5);
    // Evaluated by fits without the label, the gain is smaller than on the labels that fitted it.
    let forty = confident_predictions(40, 4);
    let fitted = fit(40);
    let on_fitted_labels =
        Metrics::of(forty.matrix().unwrap(), &forty.labels, fitted.temperature().unwrap()).unwrap();
    assert!(fitted.raw.nll > fitted.calibrated.nll && fitted.calibrated.nll > on_fitted_labels.nll);
    let stored = serde_json::to_string(&enough).unwrap();
    assert_eq!(serde_json::from_str::<FittedCalibrator>(&stored).unwrap(), enough);
}

/// Held-out labels may ask for more confidence; the ones that were trained on may not.
#[test]
fn training_labels_never_raise_the_confidence() {
    // One wrong in four hundred at a margin of 1: as sure as it is, it is not sure enough.
    let mut modest = confident_predictions(400, 400);
    modest.logits = [1.0, 0.0].repeat(400);
    let reason = Fitted::of(None, Some(&modest), &|| false).unwrap().reason().unwrap();
    assert_eq!(
        (reason.held_out, reason.min_labels, reason.training_labels),
        (0, 10, TrainingLabels::MoreConfident)
    );
    let held_out = Fitted::of(Some((&modest, FittedOn::HeldOut)), None, &|| false).unwrap();
    assert!(held_out.calibrator().unwrap().calibrated.mean_confidence > 0.95);
}

#[test]
fn missing_calibrator_has_a_reason() {
    let reason = |held_out: usize, labelled: Option<&Predictions>| {
        let held_out = confident_predictions(held_out, 4);
        Fitted::of(Some((&held_out, FittedOn::HeldOut)), labelled, &|| false).unwrap().reason().unwrap()
    };
    assert_eq!((reason(4, None).held_out, reason(4, None).training_labels), (4, TrainingLabels::TooFew));
    // Calibrated already, a quarter wrong at a margin of ln 3: what a fold fits is noise.
    let mut calibrated = confident_predictions(12, 4);
    calibrated.logits = [3.0_f32.ln(), 0.0].repeat(12);
    assert_eq!(reason(0, Some(&calibrated)).training_labels, TrainingLabels::NoHelp);
}

#[test]
fn favoured_class_gets_vector_scaling() {
    let kind = |n: usize, favour: f32| {
        let fitted = FittedCalibrator::fit(&favoured(n, favour), FittedOn::Later, &|| false).unwrap();
        (fitted.calibrator.kind(), fitted.tried.len(), fitted.changed_labels > 0, fitted.rule)
    };
    assert_eq!(kind(99, 6.0), (CalibratorKind::Temperature, 1, false, FitRule::PenalisedNll));
    assert_eq!(kind(400, 6.0), (CalibratorKind::Vector, 2, true, FitRule::CrossValidatedNll));
    // Where a temperature is all it takes, it stays one.
    assert_eq!(kind(400, 0.0), (CalibratorKind::Temperature, 2, false, FitRule::CrossValidatedNll));
    assert_eq!(kind(1_500, 0.0).1, 3);
}

/// A quarter is wrong: at a margin of 6 that is far too sure, at one of ln 3 it is right.
#[test]
fn head_gets_a_temperature_only_with_a_clear_gain() {
    let fit = |n: usize, margin: f32| {
        let labels = (0..n).map(|i| u32::from(i % 4 == 0)).collect();
        let predictions = predictions(2, labels, [margin, 0.0].repeat(n));
        let (fitted, _) = FittedCalibrator::fit_out_of_fold(&predictions, &|| false).unwrap();
        assert_eq!(fitted.rule, FitRule::ClearGain);
        fitted.temperature().unwrap().value()
    };
    // The prior holds it back from the likeliest temperature, 5.5, and its search ends at 3.65.
    assert!((1.5..3.6).contains(&fit(40, 6.0)), "{}", fit(40, 6.0));
    assert!(fit(4_000, 6.0) > 3.6, "{}", fit(4_000, 6.0));
    for n in [12, 40, 400] {
        assert_eq!(fit(n, 3_f32.ln()), 1.0);
    }
    // The most likely temperature of 40 labels would be 0.91.
    assert_eq!(fit(40, 1.0), 1.0);
}

/// Whenever the stop comes, it is the last thing that the fit looks at.
#[test]
fn stop_ends_a_fit_at_once() {
    let labels = favoured(400, 6.0);
    let fitted = FittedCalibrator::fit(&labels, FittedOn::HeldOut, &|| false).unwrap();
    assert_eq!(fitted.calibrator.kind(), CalibratorKind::Vector);
    for after in [1, 2, 9, 30, 70] {
        let calls = Cell::new(0);
        let stop = || {
            calls.set(calls.get() + 1);
            calls.get() == after
        };
        let ended = FittedCalibrator::fit(&labels, FittedOn::HeldOut, &stop);
        assert_eq!((ended, calls.replace(0)), (Err(MetricsError::Stopped), after));
        let ended = fitted.cross_fit(&labels, &stop);
        assert_eq!((ended, calls.replace(0)), (Err(MetricsError::Stopped), after));
        let ended = evaluate_unless(&labels, Some(&fitted), None, &mut || stop());
        assert_eq!((ended, calls.replace(0)), (Ok(None), after));
    }
}
