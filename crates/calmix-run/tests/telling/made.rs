//! A run that was never run: every kind of event, every field set somewhere.

use std::collections::BTreeMap;

use calmix_core::rng::{Domain, Seed};
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::evaluate::{evaluate, select};
use calmix_metrics::fitted_calibrator::{FitRule, FittedCalibrator, FittedOn};
use calmix_metrics::margins::{EasyHard, Margins};
use calmix_metrics::metrics::{Metrics, Resampling};
use calmix_metrics::predictions::Predictions;
use calmix_metrics::predictions::{EvalModel, EvalSet};
use calmix_metrics::pseudo_labels::{ImpurityOf, PseudoLabelMetrics};
use calmix_recipe::Selection;

use calmix_run::events::{Event, Finished, Loss, Note, Pace, Step};
use calmix_run::summary::RunSummary;

/// Logits of 60 samples and 7 classes, right more often than not.
pub(crate) fn predictions(step: u64, split: EvalSet, model: EvalModel) -> Predictions {
    let n = 60;
    let classes = 7;
    let mut stream = Seed(step).stream(Domain::Split, split as u64, model as u64);
    let labels: Vec<u32> = (0..n).map(|_| stream.index(classes) as u32).collect();
    let mut logits: Vec<f32> = (0..n * classes).map(|_| stream.normal() as f32).collect();
    for (row, &label) in logits.chunks_mut(classes).zip(&labels) {
        row[label as usize] += 1.5;
    }
    Predictions {
        step,
        split,
        model,
        classes: (0..classes).map(|class| format!("class {class}")).collect(),
        ids: (0..n as u64).map(|i| 1000 + i).collect(),
        labels,
        logits,
        groups: Vec::new(),
    }
}

/// The summary of a run on the classes of [`predictions`].
pub(crate) fn summary() -> RunSummary {
    RunSummary {
        dataset: "folder".into(),
        classes: 7,
        labelled: 70,
        validation: 60,
        unlabelled: 0,
        base: "fixmatch".into(),
        pairing: "none".into(),
        network: "wrn-10-1".into(),
        size: 8,
        steps: 10,
        seed: 0,
        label_seed: 0,
        recipe: "4f1c".into(),
        based_on: None,
    }
}

fn pseudo(error: f64) -> PseudoLabelMetrics {
    PseudoLabelMetrics {
        samples: 448,
        error,
        mean_confidence: 0.875,
        confidence_gap: error - 0.125,
        ece_15: error,
    }
}

pub(crate) fn step(step: u64) -> Step {
    let mut stream = Seed(1).stream(Domain::Lambda, step, 0);
    let mut number = || stream.uniform();
    let late = step > 4;
    let half = |easy: f64| EasyHard { easy: Some(easy), hard: late.then_some(easy - 1.0) };
    Step {
        learning_rate: 0.03 * number(),
        gradient_norm: Some(number() as f32),
        utilisation: Some(number()),
        impurity: late.then(&mut number),
        margin: Some(Margins { labelled: half(number()), unlabelled: half(number()) }),
        mixes: late.then_some(step),
        skipped: (step == 7).then_some(2),
        overflows: (step == 8).then_some(1),
        impurity_of: late.then_some(ImpurityOf { easy: Some(0.1), hard: None, mixtures: Some(0.3) }),
        pseudo: late.then(|| pseudo(1.0 / step as f64)),
        ..Step::new(
            step,
            Loss {
                total: number() as f32,
                labelled: number() as f32,
                // A loss that is not finite.
                unlabelled: Some(if step == 6 { f32::INFINITY } else { number() as f32 }),
                mix: late.then(|| number() as f32),
                further: [("fairness".to_owned(), -0.5)].into(),
            },
        )
    }
}

/// A temperature that 60 labels fitted.
pub(crate) fn temperature(value: f64, fitted_on: FittedOn) -> FittedCalibrator {
    let predictions = predictions(1, EvalSet::Validation, EvalModel::Ema);
    let temperature = Temperature::new(value).unwrap();
    let logits = predictions.matrix().unwrap();
    FittedCalibrator {
        groups: None,
        calibrator: Calibrator::Temperature { temperature },
        fitted_on,
        samples: 60,
        rule: FitRule::PenalisedNll,
        tried: Vec::new(),
        changed_labels: 0,
        origin: None,
        raw: Metrics::of(logits, &predictions.labels, Temperature::IDENTITY).unwrap(),
        calibrated: Metrics::of(logits, &predictions.labels, temperature).unwrap(),
    }
}

/// Ten steps with evaluations at 5 and 10, the last with intervals and a temperature.
pub(crate) fn events() -> Vec<Event> {
    let mut events = Vec::new();
    let mut history = Vec::new();
    for at in 1..=10 {
        events.push(Event::Step(Box::new(step(at))));
        if at == 3 {
            let text = "so \"it\" is".to_owned();
            let hint = "do this\nthen that".to_owned();
            events.push(Event::Note(Note { step: at, text, hint }));
        }
        for (split, model) in [
            (EvalSet::Validation, EvalModel::Ema),
            (EvalSet::Test, EvalModel::Ema),
            (EvalSet::Test, EvalModel::Live),
        ] {
            let last = at == 10;
            if at % 5 == 0 {
                let map = temperature(1.25, FittedOn::HeldOut);
                let how = Resampling { replicates: 50, level: 0.9 };
                let predictions = predictions(at, split, model);
                let seen =
                    evaluate(&predictions, last.then_some(&map), last.then_some((how, Seed(3)))).unwrap();
                history.push(seen.clone());
                events.push(Event::Evaluation(Box::new(seen)));
            }
        }
    }
    let rules = [Selection::Last, Selection::Median, Selection::BestValidation];
    let selected: BTreeMap<_, _> =
        rules.into_iter().filter_map(|rule| Some((rule, select(rule, 20, &history)?))).collect();
    assert_eq!(selected.len(), 3);
    events.push(Event::Finished(Finished { step: 10, selected, pseudo: Some(pseudo(0.25)) }));
    events
}

pub(crate) fn pace(step: u64) -> Pace {
    Pace {
        step,
        images_per_second: 412.25,
        waiting: 0.012,
        elapsed_seconds: step as f64,
        left_seconds: Some(185.0),
        processes: None,
    }
}
