//! Error and calibration error of the EMA weights over training.

use calmix_metrics::metrics::MIN_SAMPLES_FOR_ECE;
use calmix_metrics::predictions::{EvalModel, EvalSet};
use calmix_run::events::Event;
use serde::Serialize;

use super::view::{Curve, DataTable, PlotView, RunData, TableCell, legend_name, step_panel};

/// The metrics of every evaluation of a split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainingCurve {
    pub split: EvalSet,
    pub samples: u64,
    /// The evaluations, in order.
    pub points: Vec<EvaluatedStep>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EvaluatedStep {
    /// The number of updates before it.
    pub step: u64,
    /// The share of wrong predictions.
    pub error: f64,
    /// The expected calibration error, 15 bins.
    pub ece_15: f64,
}

impl TrainingCurve {
    /// Collects the evaluations in the events of a run: on the test split if any, otherwise on validation.
    pub fn of(events: &[Event]) -> Option<Self> {
        let evaluations: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Evaluation(evaluation) if evaluation.model == EvalModel::Ema => Some(evaluation),
                _ => None,
            })
            .collect();
        let split = evaluations.iter().map(|evaluation| evaluation.split).max()?;
        let mut points: Vec<EvaluatedStep> = Vec::new();
        let mut samples = 0;
        for evaluation in evaluations.iter().filter(|evaluation| evaluation.split == split) {
            let point = EvaluatedStep {
                step: evaluation.step,
                error: evaluation.metrics.error,
                ece_15: evaluation.metrics.ece_15,
            };
            samples = evaluation.samples;
            // The selected model is evaluated once more at the end.
            points.retain(|other| other.step != evaluation.step);
            points.push(point);
        }
        points.sort_by_key(|point| point.step);
        Some(Self { split, samples, points })
    }
}

/// Plots error and ECE, each in a panel with all runs.
pub(super) fn view(curves: &[RunData<'_, TrainingCurve>]) -> Option<PlotView> {
    // Heads have a single evaluation, which shows no progress.
    let curves: Vec<_> = curves.iter().filter(|curve| curve.data.points.len() > 1).collect();
    let last = curves.iter().flat_map(|curve| curve.data.points.iter().map(|point| point.step)).max()?;
    let panel = |title: &str, label: &str, pick: fn(&EvaluatedStep) -> f64| {
        let curve = |&&RunData { tone, name, data }: &&RunData<'_, TrainingCurve>| {
            let points = data.points.iter().map(|point| (point.step as f64, pick(point))).collect();
            Curve { tone, text: format!("{}, {}", legend_name(name), data.split.word()), points }
        };
        step_panel(title, label, last, curves.iter().map(curve).collect(), true)
    };
    let rows = curves.iter().flat_map(|&&RunData { name, data: curve, .. }| {
        curve.points.iter().map(|point| {
            vec![
                TableCell::Text(name.to_owned()),
                TableCell::Text(curve.split.word().to_owned()),
                TableCell::Count(point.step),
                TableCell::Share(point.error),
                TableCell::Share(point.ece_15),
            ]
        })
    });
    let few = curves.iter().any(|curve| curve.data.samples < MIN_SAMPLES_FOR_ECE);
    let few = if few { "; with fewer than 1,000 samples it is mostly noise" } else { "" };
    Some(PlotView {
        name: "training".to_owned(),
        title: "How did training progress?".to_owned(),
        sentence: format!(
            "Each point is an evaluation of the averaged weights, before calibration. The error is the share of wrong \
             predictions; the ECE is the mean distance between confidence and accuracy over 15 bins{few}."
        ),
        panels: vec![
            panel("Error", "error, %", |point| point.error),
            panel("Calibration error", "ECE, %", |point| point.ece_15),
        ],
        images: Vec::new(),
        table: DataTable {
            columns: vec!["run", "split", "step", "error", "ECE, 15 bins"],
            rows: rows.collect(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::pseudo_labels::{self, PseudoLabelPoint};

    #[test]
    fn curve_of_one_point_is_left_out() {
        let point = |step| EvaluatedStep { step, error: 0.1, ece_15: 0.1 };
        for (steps, is_drawn) in [(vec![1_000], false), (vec![500, 1_000], true)] {
            let points = steps.into_iter().map(point).collect();
            let curve = TrainingCurve { split: EvalSet::Test, samples: 2, points };
            assert_eq!(view(&[RunData { tone: 0, name: "head", data: &curve }]).is_some(), is_drawn);
        }
        let point = |step| PseudoLabelPoint { step, events: 1, utilisation: Some(0.5), impurity: None };
        let points = [point(1_000), point(2_000)];
        for (data, is_drawn) in [(&points[..1], false), (&points[..], true)] {
            let curve = RunData { tone: 0, name: "head", data };
            assert_eq!(pseudo_labels::view(&[curve]).is_some(), is_drawn);
        }
    }
}
