//! What a model promises of its sets and answers, by the labels that were held out.

use calmix_core::calibration::conformal::Conformal;
use calmix_core::calibration::{AnswerThreshold, CalibrationError, fewest_labels};
use calmix_run::held_out::HeldOut;

use super::ModelOptions;

/// What a model promises. It holds for images like those whose labels were held out.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    kept: Option<Kept>,
    /// Why nothing is promised.
    reason: &'static str,
    coverage: f64,
    precision: f64,
}

/// What the held-out labels show.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    labels: usize,
    sets: Conformal,
    /// None if they do not show the precision of any answers.
    answers: Option<AnswerThreshold>,
}

impl Promise {
    /// Refuses options that mean nothing, whether labels were held out or not.
    pub(super) fn check(options: &ModelOptions) -> Result<(), CalibrationError> {
        for (what, value) in [("coverage", options.coverage), ("precision", options.precision)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(CalibrationError::Parameter { what, value, allowed: "between 0 and 1" });
            }
        }
        Ok(())
    }

    pub(super) fn new(held_out: Option<&HeldOut>, options: &ModelOptions) -> Result<Self, CalibrationError> {
        let &ModelOptions { coverage, precision, sets, .. } = options;
        let mut promise =
            Self { kept: None, reason: "no labels were held out from training", coverage, precision };
        let Some(held_out) = held_out.filter(|held_out| !held_out.is_empty()) else { return Ok(promise) };
        if !held_out.is_sound() {
            promise.reason = "the held-out labels in model.json contradict each other";
            return Ok(promise);
        }
        promise.kept = Some(Kept {
            labels: held_out.len(),
            sets: held_out.sets(sets, coverage)?,
            answers: held_out.answer_threshold(precision)?,
        });
        Ok(promise)
    }

    /// The rule for sets of classes; none where no labels were held out.
    pub fn sets(&self) -> Option<&Conformal> {
        self.kept.as_ref().map(|kept| &kept.sets)
    }

    /// The score from which on the model answers; none if no score has the requested precision.
    pub fn answers(&self) -> Option<&AnswerThreshold> {
        self.kept.as_ref()?.answers.as_ref()
    }

    /// Whether the model abstains from an image with this
    /// [score](calmix_core::calibration::confidence_map::ConfidenceMap::answer_score); none if no labels were held out. If
    /// the labels show the precision of no answers, it abstains from all.
    pub fn abstains(&self, score: f64) -> Option<bool> {
        let kept = self.kept.as_ref()?;
        Some(kept.answers.is_none_or(|answers| score < answers.threshold))
    }

    /// What cannot be promised and why, in sentences.
    pub fn missing(&self) -> Vec<String> {
        let Some(kept) = &self.kept else {
            return vec![format!("{}, so no promise is made: no sets and no abstaining", self.reason)];
        };
        let mut sentences = Vec::new();
        let labels = kept.labels;
        let percent = |share: f64| format!("{} %", (1000.0 * share).round() / 10.0);
        if kept.sets.threshold.is_none() {
            sentences.push(format!(
                "{labels} held-out labels are too few for a coverage of {}: every set holds all classes",
                percent(self.coverage)
            ));
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
