//! Assesses a model in plain sentences: its calibration, and which predictions to trust.

use calmix_io::text::{counted, counted_in_groups};
use calmix_metrics::abstention::min_labels;
use calmix_metrics::evaluate::{EvaluatedBy, Evaluation};
use calmix_metrics::held_out::HeldOut;
use calmix_metrics::metrics::MIN_SAMPLES_FOR_ECE;
use calmix_metrics::metrics::{ExactIntervals, LEVEL, MIN_SAMPLES_TO_ASSESS, Metrics};
use calmix_metrics::predictions::EvalSet;
use calmix_run::sink::phrase::{measured, over_or_under};
use serde::Serialize;

/// The precision for which the assessment states a confidence threshold.
pub const PRECISION: f64 = 0.95;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// The confidence compared with the accuracy, or why there are no metrics.
    pub headline: String,
    /// Which predictions to trust, or why there is no threshold.
    pub trust: String,
    /// The share of the held-out labels above the threshold for 95% precision; `None` without such a threshold.
    #[serde(rename = "answers")]
    pub answered_share: Option<f64>,
    /// Further sentences, such as what the model was evaluated on.
    pub notes: Vec<String>,
}

/// The origin of the labels for a confidence threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelsOf {
    /// The labels held out by a finished run.
    FinishedRun,
    /// The training labels of a finished run, each predicted by a head trained without it.
    OutOfFold,
    UnfinishedRun,
    /// The labels of predictions by another program.
    Predictions,
}

impl LabelsOf {
    fn counted(self, labels: usize, groups: usize) -> String {
        let groups = (groups < labels).then_some(groups as u64);
        let counted = |what: &str| counted_in_groups(labels as u64, what, groups);
        match self {
            Self::OutOfFold => format!("{} predicted out of fold", counted("label")),
            Self::FinishedRun | Self::UnfinishedRun | Self::Predictions => counted("held-out label"),
        }
    }
}

impl Assessment {
    /// Assesses a model by an evaluation and its stored held-out labels.
    pub fn of(evaluation: Option<&Evaluation>, held_out: Option<&HeldOut>, labels: LabelsOf) -> Self {
        let held_out = held_out.filter(|held_out| held_out.is_sound() && !held_out.is_empty());
        let (answered_share, trust) = trust(held_out, labels);
        let mut notes = Vec::new();
        let Some(evaluation) = evaluation else {
            let headline = "There are no metrics yet: the run has no predictions for labelled samples.";
            return Self { headline: headline.to_owned(), trust, answered_share, notes };
        };
        let labels_in_groups = |noun: &str| counted_in_groups(evaluation.samples, noun, evaluation.groups);
        let samples = match evaluation.split {
            EvalSet::OutOfFold => {
                format!("{}, each predicted by a head trained without it", labels_in_groups("label"))
            }
            split => format!("{} of the {} split", labels_in_groups("sample"), split.word()),
        };
        let headline = match &evaluation.calibrated {
            _ if evaluation.observations() < MIN_SAMPLES_TO_ASSESS => {
                format!(
                    "Too few labels: it was evaluated on {samples}; an assessment needs {MIN_SAMPLES_TO_ASSESS}."
                )
            }
            Some(calibrated) => {
                format!(
                    "After calibration, {}.",
                    confidence_against_accuracy("its", &calibrated.metrics, evaluation.observations())
                )
            }
            None => format!(
                "{}.",
                confidence_against_accuracy("Its", &evaluation.metrics, evaluation.observations())
            ),
        };
        if evaluation.observations() >= MIN_SAMPLES_TO_ASSESS
            && let Some(calibrated) = &evaluation.calibrated
        {
            notes.push(format!(
                "Without calibration, {}.",
                confidence_against_accuracy("its", &evaluation.metrics, evaluation.observations())
            ));
            if calibrated.evaluated_by == EvaluatedBy::CrossFit {
                notes.push(
                    "The calibration was fitted on these labels; each is evaluated with a fit that leaves it out."
                        .to_owned(),
                );
            }
        }
        // Heads on one vector per sample are trained in one go.
        let after = match evaluation.step {
            0 => String::new(),
            steps => format!(", after {}", counted(steps, "training step")),
        };
        notes.push(format!("Evaluated on {samples}{after}."));
        Self { headline, trust, answered_share, notes }
    }
}

/// Formats a sentence such as "its mean confidence is 97.0% and its accuracy 81.0%: over-confident by 16.0 points". With
/// enough samples for an ECE, the ECE comes first, because over- and under-confidence can cancel in the means.
fn confidence_against_accuracy(its: &str, metrics: &Metrics, samples: u64) -> String {
    let confidence = measured(metrics.mean_confidence, None);
    let right = measured(1.0 - metrics.error, None);
    let interval = ExactIntervals::of(metrics, samples, LEVEL).map(|interval| interval.confidence_gap);
    let chance = interval.is_some_and(|interval| interval.low <= 0.0 && interval.high >= 0.0);
    let chance = if chance { ", which may be due to chance" } else { "" };
    let overall = format!("{}{chance}", over_or_under(metrics.confidence_gap));
    if samples < MIN_SAMPLES_FOR_ECE {
        return format!("{its} mean confidence is {confidence} and its accuracy {right}: {overall}");
    }
    format!(
        "{its} confidence is off by {:.1} points on average (ECE, 15 bins); its mean confidence is {confidence} and its accuracy \
         {right}: {overall}",
        100.0 * metrics.ece_15
    )
}

fn trust(held_out: Option<&HeldOut>, of: LabelsOf) -> (Option<f64>, String) {
    let precision = format!("{:.0}%", 100.0 * PRECISION);
    let needed = min_labels(PRECISION, HeldOut::DELTA);
    let Some(held_out) = held_out else {
        let why = match of {
            LabelsOf::UnfinishedRun => "The run has not ended",
            LabelsOf::FinishedRun | LabelsOf::OutOfFold | LabelsOf::Predictions => "No labels were held out",
        };
        return (None, format!("{why}, so there is no confidence threshold for {precision} precision."));
    };
    // A NaN score comes from a damaged file; then there is no threshold either.
    match held_out.answer_threshold(PRECISION).ok().flatten() {
        Some(found) => {
            let share = found.answered as f64 / found.n as f64;
            let command = match of {
                LabelsOf::Predictions => String::new(),
                _ => format!(" `calmix predict --precision {PRECISION}` abstains on the others."),
            };
            let text = format!(
                "For {precision} precision, trust its {:.0}% most confident predictions: {} of {} are among them, and {} of \
                 these are right.{command}",
                100.0 * share,
                found.answered,
                of.counted(found.n, found.n),
                found.right
            );
            (Some(share), text)
        }
        None if held_out.group_count() < 2 * needed => {
            let labels = of.counted(held_out.len(), held_out.group_count());
            let text = format!(
                "Too few labels for a {precision} precision threshold: there are {labels}, and it takes at least {needed} \
                 confident predictions that are all right."
            );
            (None, text)
        }
        None => {
            let labels = of.counted(held_out.len(), held_out.group_count());
            (None, format!("No confidence threshold reaches {precision} precision on its {labels}."))
        }
    }
}

#[cfg(test)]
mod tests {
    use calmix_metrics::calibrator::Calibrator;
    use calmix_metrics::evaluate::evaluate;
    use calmix_metrics::held_out;
    use calmix_metrics::predictions::{EvalModel, Predictions};

    use super::*;

    /// Makes predictions for two classes at a confidence of 0.97, of which every fifth is wrong.
    fn made_predictions(n: usize) -> Predictions {
        Predictions {
            step: 1_000,
            split: EvalSet::Test,
            model: EvalModel::Ema,
            classes: vec!["a".to_owned(), "b".to_owned()],
            ids: (0..n as u64).collect(),
            labels: (0..n).map(|i| u32::from(i % 5 == 4)).collect(),
            logits: [(0.97_f32 / 0.03).ln(), 0.0].repeat(n),
            groups: Vec::new(),
        }
    }

    fn assessment(n: usize, held_out: Option<&HeldOut>) -> Assessment {
        Assessment::of(
            Some(&evaluate(&made_predictions(n), None, None).unwrap()),
            held_out,
            LabelsOf::UnfinishedRun,
        )
    }

    #[test]
    fn headline_compares_confidence_with_accuracy() {
        let found = assessment(1_000, None);
        assert_eq!(
            found.headline,
            "Its confidence is off by 17.0 points on average (ECE, 15 bins); its mean confidence is 97.0% and its accuracy \
             80.0%: over-confident by 17.0 points."
        );
        assert_eq!(
            assessment(995, None).headline,
            "Its mean confidence is 97.0% and its accuracy 80.0%: over-confident by 17.0 points."
        );
        assert!(found.trust.starts_with("The run has not ended, so there is no"), "{}", found.trust);
        assert_eq!(
            found.notes,
            ["Evaluated on 1,000 samples of the test split, after 1,000 training steps."]
        );
        assert!(assessment(20, None).headline.starts_with("Too few labels: it was evaluated on 20 samples"));
        assert!(
            Assessment::of(None, None, LabelsOf::UnfinishedRun)
                .headline
                .starts_with("There are no metrics yet")
        );
    }

    #[test]
    fn out_of_fold_labels_are_not_called_held_out() {
        let trust = |wrong: usize| {
            let labels = (0..100).map(|i| u32::from(i < wrong)).collect();
            let predictions = Predictions { labels, ..made_predictions(100) };
            let held_out = held_out::score(&predictions, &Calibrator::IDENTITY).unwrap();
            Assessment::of(None, Some(&held_out), LabelsOf::OutOfFold).trust
        };
        assert_eq!(
            trust(0),
            "For 95% precision, trust its 100% most confident predictions: 100 of 100 labels predicted out of fold are among \
             them, and 100 of these are right. `calmix predict --precision 0.95` abstains on the others."
        );
        assert_eq!(
            trust(50),
            "No confidence threshold reaches 95% precision on its 100 labels predicted out of fold."
        );
    }

    #[test]
    fn precision_threshold_needs_enough_right_labels() {
        let of = |labels: Vec<u32>| {
            let n = labels.len();
            let predictions = Predictions { labels, ..made_predictions(n) };
            held_out::score(&predictions, &Calibrator::IDENTITY).unwrap()
        };
        let found = assessment(100, Some(&of(vec![0; 100])));
        let sentence = "For 95% precision, trust its 100% most confident predictions: 100 of 100";
        assert!(found.trust.starts_with(sentence), "{}", found.trust);
        assert_eq!(found.answered_share, Some(1.0));
        assert!(
            assessment(100, Some(&of(vec![0; 20]))).trust.starts_with("Too few labels for a 95% precision")
        );
        let unsure = assessment(100, Some(&of((0..200).map(|i| i % 2).collect())));
        assert_eq!(unsure.answered_share, None);
        assert!(unsure.trust.starts_with("No confidence threshold reaches 95%"), "{}", unsure.trust);
    }
}
