//! The models of a finished run that have metrics: its network, or the heads on its vectors.

use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::metrics::Metrics;
use calmix_metrics::predictions::EvalSet;
use serde::Serialize;

use crate::result::{HeadName, RunResult};

/// The metrics of one model of a run, on the split that its selection rule measures on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The head; `None` if the run trained a whole network.
    pub head: Option<HeadName>,
    /// Whether it is the model of the run.
    pub is_kept: bool,
    /// The split of the metrics.
    pub on: EvalSet,
    /// The number of samples in that split.
    pub samples: u64,
    /// The metrics before calibration.
    pub metrics: Metrics,
    /// The metrics after calibration; `None` without a calibrator.
    pub calibrated: Option<Metrics>,
}

/// The models of a finished run that have metrics: its network, or its heads in the order of
/// [`HeadChoice::candidates`](crate::result::HeadChoice::candidates).
pub fn measured(result: &RunResult) -> Vec<Measured> {
    let Some(selected) = result.finished.selected.get(&result.selection) else { return Vec::new() };
    let on = selected.on;
    let Some(heads) = &result.heads else {
        return vec![Measured {
            head: None,
            is_kept: true,
            on,
            samples: selected.samples,
            metrics: selected.metrics,
            calibrated: of_split(&result.evaluations, on).and_then(calibrated),
        }];
    };
    let mut models = Vec::new();
    for candidate in &heads.candidates {
        let Some(evaluation) = of_split(&candidate.evaluations, on) else { continue };
        models.push(Measured {
            head: Some(candidate.name),
            is_kept: candidate.kept,
            on,
            samples: evaluation.samples,
            metrics: evaluation.metrics,
            calibrated: calibrated(evaluation),
        });
    }
    models
}

fn of_split(evaluations: &[Evaluation], split: EvalSet) -> Option<&Evaluation> {
    evaluations.iter().find(|evaluation| evaluation.split == split)
}

fn calibrated(evaluation: &Evaluation) -> Option<Metrics> {
    evaluation.calibrated.as_ref().map(|calibrated| calibrated.metrics)
}
