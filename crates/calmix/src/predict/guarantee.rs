//! The guarantees of a model for its prediction sets and answers, based on held-out labels.

use calmix_io::shown::shown;
use calmix_metrics::abstention::{AnswerThreshold, fewest_labels};
use calmix_metrics::conformal::{ClassConditional, PredictionSets};
use calmix_metrics::error::MetricsError;
use calmix_metrics::held_out::HeldOut;
use serde::Serialize;

use crate::model_options::ModelOptions;

/// The coverage and precision guarantees of a model. They hold for images like those whose labels were held out.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarantee {
    kept: Option<Kept>,
    /// Why there is no guarantee; used if `kept` is `None`.
    reason: &'static str,
    coverage: f64,
    precision: f64,
}

/// The rules that the held-out labels give.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    labels: usize,
    sets: PredictionSets,
    /// The classes with too few held-out labels for a threshold of their own, which are in every prediction set.
    scarce: Vec<ScarceClass>,
    /// `None` if no threshold reaches the precision.
    answers: Option<AnswerThreshold>,
}

/// A class with too few held-out labels for a threshold of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScarceClass {
    /// The name of the class.
    pub class: String,
    /// The number of held-out labels that the class still needs.
    pub missing_labels: usize,
}

/// The most classes that a message names.
const NAMED: usize = 20;

impl Guarantee {
    /// Refuses options out of range, whether labels were held out or not.
    ///
    /// # Errors
    /// Names the option and its range.
    pub fn check(options: &ModelOptions) -> Result<(), MetricsError> {
        for (what, value) in [("coverage", options.coverage), ("precision", options.precision)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(MetricsError::Parameter { what, value, allowed: "between 0 and 1" });
            }
        }
        Ok(())
    }

    /// The guarantees that these held-out labels give.
    ///
    /// # Errors
    /// If the options are out of range.
    pub fn new(
        held_out: Option<&HeldOut>,
        classes: &[String],
        options: &ModelOptions,
    ) -> Result<Self, MetricsError> {
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

    /// The rule for prediction sets; `None` if no labels were held out.
    pub fn sets(&self) -> Option<&PredictionSets> {
        self.kept.as_ref().map(|kept| &kept.sets)
    }

    /// The classes that have too few held-out labels for [`SetRule::LacByClass`](calmix_metrics::held_out::SetRule): they are in
    /// every set. Empty for other rules.
    pub fn scarce_classes(&self) -> &[ScarceClass] {
        self.kept.as_ref().map_or(&[], |kept| &kept.scarce)
    }

    /// The score threshold at or above which the model answers; `None` if no threshold reaches the precision.
    pub fn answers(&self) -> Option<&AnswerThreshold> {
        self.kept.as_ref()?.answers.as_ref()
    }

    /// Whether the model abstains from an image with this
    /// [score](calmix_metrics::calibrator::any_calibrator::Calibrator::answer_score); `None` if no labels were held out. If
    /// no threshold reaches the precision, the model abstains from every image.
    pub fn abstains(&self, score: f64) -> Option<bool> {
        let kept = self.kept.as_ref()?;
        Some(kept.answers.is_none_or(|answers| score < answers.threshold))
    }

    /// Returns the guarantees that the model cannot give, and why, one sentence each.
    pub fn missing(&self) -> Vec<String> {
        let sets = self.missing_sets();
        // Without held-out labels, one sentence says why neither can be given.
        let answers = self.missing_answers().filter(|sentence| sets.as_ref() != Some(sentence));
        sets.into_iter().chain(answers).collect()
    }

    /// Returns why prediction sets lack their coverage guarantee or have it by containing all classes; `None` if they have it.
    pub fn missing_sets(&self) -> Option<String> {
        let Some(kept) = &self.kept else { return Some(self.without_labels()) };
        let coverage = percent(self.coverage);
        match &kept.sets {
            PredictionSets::Marginal(rule) if rule.threshold.is_none() => Some(format!(
                "{} held-out labels are too few for a coverage of {coverage}: every prediction set contains all classes",
                kept.labels
            )),
            PredictionSets::ByClass(rule) if !kept.scarce.is_empty() => {
                let named: Vec<String> = kept
                    .scarce
                    .iter()
                    .take(NAMED)
                    .map(|scarce| format!("{} ({} more)", shown(&scarce.class), scarce.missing_labels))
                    .collect();
                let more = if kept.scarce.len() > NAMED { ", …" } else { "" };
                Some(format!(
                    "a coverage of {coverage} for each class needs {} held-out labels per class; classes with fewer are in \
                     every prediction set: {}{more}",
                    rule.needed_labels(),
                    named.join(", ")
                ))
            }
            PredictionSets::Marginal(_) | PredictionSets::ByClass(_) => None,
        }
    }

    /// Returns why the model always abstains; `None` if a threshold reaches the precision.
    pub fn missing_answers(&self) -> Option<String> {
        let Some(kept) = &self.kept else { return Some(self.without_labels()) };
        if kept.answers.is_some() {
            return None;
        }
        let labels = kept.labels;
        let needed = fewest_labels(self.precision, HeldOut::DELTA);
        let precision = percent(self.precision);
        let why = if labels < needed {
            format!(
                "{labels} held-out labels are too few for a precision of {precision}, which needs at least {needed}, all \
                 of them right"
            )
        } else {
            format!("no confidence threshold reaches {precision} precision on the {labels} held-out labels")
        };
        Some(format!("{why}: the model always abstains"))
    }

    fn without_labels(&self) -> String {
        format!("{}, so there are no prediction sets, and the model cannot abstain", self.reason)
    }
}

fn percent(share: f64) -> String {
    format!("{}%", (1000.0 * share).round() / 10.0)
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
