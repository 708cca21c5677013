//! What a model guarantees of its sets and answers, by the labels that were held out.

use calmix_io::shown::shown;
use calmix_metrics::abstention::{AnswerThreshold, fewest_labels};
use calmix_metrics::conformal::{ClassConditional, PredictionSets};
use calmix_metrics::error::CalibrationError;
use calmix_metrics::held_out::HeldOut;
use serde::Serialize;

use super::ModelOptions;

/// What a model guarantees. It holds for images like those whose labels were held out.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarantee {
    kept: Option<Kept>,
    /// Why nothing is guaranteed.
    reason: &'static str,
    coverage: f64,
    precision: f64,
}

/// What the held-out labels show.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    labels: usize,
    sets: PredictionSets,
    /// The classes that have too few held-out labels for a threshold of their own, so that they are in every set.
    scarce: Vec<ScarceClass>,
    /// None if they do not show the precision of any answers.
    answers: Option<AnswerThreshold>,
}

/// A class with too few held-out labels for a threshold of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScarceClass {
    /// Its name.
    pub class: String,
    /// How many more held-out labels it needs.
    pub missing_labels: usize,
}

/// Classes that a message names.
const NAMED: usize = 20;

impl Guarantee {
    /// Refuses options that mean nothing, whether labels were held out or not.
    pub(super) fn check(options: &ModelOptions) -> Result<(), CalibrationError> {
        for (what, value) in [("coverage", options.coverage), ("precision", options.precision)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(CalibrationError::Parameter { what, value, allowed: "between 0 and 1" });
            }
        }
        Ok(())
    }

    pub(super) fn new(
        held_out: Option<&HeldOut>,
        classes: &[String],
        options: &ModelOptions,
    ) -> Result<Self, CalibrationError> {
        let &ModelOptions { coverage, precision, sets, .. } = options;
        let mut guarantee =
            Self { kept: None, reason: "no labels were held out from training", coverage, precision };
        let Some(held_out) = held_out.filter(|held_out| !held_out.is_empty()) else { return Ok(guarantee) };
        if !held_out.is_sound() {
            guarantee.reason = "the held-out labels in model.json contradict each other";
            return Ok(guarantee);
        }
        let sets = held_out.sets(sets, coverage)?;
        guarantee.kept = Some(Kept {
            labels: held_out.len(),
            scarce: match &sets {
                PredictionSets::Marginal(_) => Vec::new(),
                PredictionSets::ByClass(rule) => scarce_classes(rule, classes),
            },
            sets,
            answers: held_out.answer_threshold(precision)?,
        });
        Ok(guarantee)
    }

    /// The rule for prediction sets; none where no labels were held out.
    pub fn sets(&self) -> Option<&PredictionSets> {
        self.kept.as_ref().map(|kept| &kept.sets)
    }

    /// The classes that have too few held-out labels for [`SetRule::LacByClass`](calmix_metrics::held_out::SetRule): they are in
    /// every set. Empty for other rules.
    pub fn scarce_classes(&self) -> &[ScarceClass] {
        self.kept.as_ref().map_or(&[], |kept| &kept.scarce)
    }

    /// The score from which on the model answers; none if no score has the requested precision.
    pub fn answers(&self) -> Option<&AnswerThreshold> {
        self.kept.as_ref()?.answers.as_ref()
    }

    /// Whether the model abstains from an image with this
    /// [score](calmix_metrics::calibrator::any_calibrator::Calibrator::answer_score); none if no labels were held out. If
    /// the labels show the precision of no answers, it abstains from all.
    pub fn abstains(&self, score: f64) -> Option<bool> {
        let kept = self.kept.as_ref()?;
        Some(kept.answers.is_none_or(|answers| score < answers.threshold))
    }

    /// What cannot be guaranteed and why, in sentences.
    pub fn missing(&self) -> Vec<String> {
        let Some(kept) = &self.kept else {
            return vec![format!("{}, so no guarantee is made: no sets and no abstaining", self.reason)];
        };
        let mut sentences = Vec::new();
        let labels = kept.labels;
        let percent = |share: f64| format!("{}%", (1000.0 * share).round() / 10.0);
        match &kept.sets {
            PredictionSets::Marginal(rule) if rule.threshold.is_none() => sentences.push(format!(
                "{labels} held-out labels are too few for a coverage of {}: every set holds all classes",
                percent(self.coverage)
            )),
            PredictionSets::ByClass(rule) if !kept.scarce.is_empty() => {
                let named: Vec<String> = kept
                    .scarce
                    .iter()
                    .take(NAMED)
                    .map(|scarce| format!("{} ({} more)", shown(&scarce.class), scarce.missing_labels))
                    .collect();
                let more = if kept.scarce.len() > NAMED { ", …" } else { "" };
                sentences.push(format!(
                    "a coverage of {} for each class takes {} held-out labels per class; classes that have fewer are in every \
                     set: {}{more}",
                    percent(self.coverage),
                    rule.needed_labels(),
                    named.join(", ")
                ));
            }
            PredictionSets::Marginal(_) | PredictionSets::ByClass(_) => {}
        }
        if kept.answers.is_none() {
            let needed = fewest_labels(self.precision, HeldOut::DELTA);
            let why = if labels < needed {
                format!("which takes at least {needed}, all of them right")
            } else {
                "not even of its most confident answers".to_owned()
            };
            sentences.push(format!(
                "{labels} held-out labels do not show a precision of {}, {why}: it abstains from every image",
                percent(self.precision)
            ));
        }
        sentences
    }
}

fn scarce_classes(rule: &ClassConditional, classes: &[String]) -> Vec<ScarceClass> {
    let mut scarce = Vec::new();
    for (number, class) in (0..).zip(classes) {
        let missing_labels = rule.missing_labels(number);
        if missing_labels > 0 {
            scarce.push(ScarceClass { class: class.clone(), missing_labels });
        }
    }
    scarce
}
