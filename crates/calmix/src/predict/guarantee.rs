//! The guarantees of a model for its prediction sets and answers, based on held-out labels.

use calmix_io::shown::shown;
use calmix_metrics::abstention::{AnswerThreshold, min_labels};
use calmix_metrics::conformal::{ClassConditional, PredictionSets};
use calmix_metrics::error::MetricsError;
use calmix_metrics::groups::group_count;
use calmix_metrics::held_out::{AdaptedLabels, HeldOut, LabelLogits, SetRule};
use serde::Serialize;

use crate::model::options::ModelOptions;
use crate::output::format::{MAX_NAMED_CLASSES, class_list, list};

/// The coverage and precision guarantees of a model. They hold for new samples that are like the held-out ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarantee {
    rules: Option<HeldOutRules>,
    /// Why there is no guarantee; used if `rules` is `None`.
    reason: &'static str,
    coverage: f64,
    precision: f64,
}

/// The rules that follow from the held-out labels.
#[derive(Debug, Clone, PartialEq)]
struct HeldOutRules {
    labels: usize,
    /// The number of groups of these labels; equal to `labels` if each is a group of its own.
    groups: usize,
    /// The classes that have labels in one fold only, so that no out-of-fold prediction could name them.
    unseen: Vec<String>,
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

impl Guarantee {
    /// Refuses options out of range, whether labels were held out or not.
    pub fn check(options: &ModelOptions) -> Result<(), MetricsError> {
        for (what, value) in [("coverage", options.coverage), ("precision", options.precision)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(MetricsError::Parameter { what, value, allowed: "between 0 and 1" });
            }
        }
        Ok(())
    }

    /// Creates the guarantees that follow from these held-out labels.
    pub fn new(
        held_out: Option<&HeldOut>,
        classes: &[String],
        options: &ModelOptions,
    ) -> Result<Self, MetricsError> {
        let &ModelOptions { coverage, precision, .. } = options;
        let mut guarantee =
            Self { rules: None, reason: "no labels were held out from training", coverage, precision };
        let Some(held_out) = held_out.filter(|held_out| !held_out.is_empty()) else { return Ok(guarantee) };
        if !held_out.is_sound() {
            guarantee.reason = "the held-out labels in model.json contradict each other";
            return Ok(guarantee);
        }
        Self::of_labels(held_out, classes, options, held_out.answer_threshold(precision)?)
    }

    /// Creates the guarantees that follow from the labels of the caller, of which there may be more than a model stores. `answers` is
    /// the threshold for the precision.
    pub(crate) fn of_labels(
        held_out: &HeldOut,
        classes: &[String],
        options: &ModelOptions,
        answers: Option<AnswerThreshold>,
    ) -> Result<Self, MetricsError> {
        let &ModelOptions { coverage, precision, sets, .. } = options;
        let sets = held_out.sets(sets, coverage)?;
        let rules = HeldOutRules {
            labels: held_out.len(),
            groups: held_out.group_count(),
            unseen: unseen_classes(held_out, classes),
            scarce: match &sets {
                PredictionSets::Marginal(_) => Vec::new(),
                PredictionSets::ByClass(rule) => scarce_classes(rule, classes),
            },
            sets,
            answers,
        };
        Ok(Self { rules: Some(rules), reason: "", coverage, precision })
    }

    /// Creates the guarantees for another mix of classes that follow from the logits of held-out labels.
    ///
    /// # Errors
    /// If the labels do not fit the weights of the classes, or the sets are APS.
    pub fn for_mix(
        labels: &LabelLogits,
        weights: &[f64],
        classes: &[String],
        options: &ModelOptions,
    ) -> Result<Self, MetricsError> {
        let &ModelOptions { coverage, precision, sets, .. } = options;
        let adapted = AdaptedLabels::new(labels, weights)?;
        let sets_rule = adapted.sets(sets, coverage)?;
        let scarce = match &sets_rule {
            PredictionSets::ByClass(rule) if sets == SetRule::LacByClass => scarce_classes(rule, classes),
            _ => Vec::new(),
        };
        let rules = HeldOutRules {
            labels: labels.len(),
            groups: group_count(&labels.groups, labels.len()),
            unseen: Vec::new(),
            scarce,
            sets: sets_rule,
            answers: adapted.answer_threshold(precision)?,
        };
        Ok(Self { rules: Some(rules), reason: "", coverage, precision })
    }

    /// Returns the rule for prediction sets; `None` if no labels were held out.
    pub fn sets(&self) -> Option<&PredictionSets> {
        self.rules.as_ref().map(|rules| &rules.sets)
    }

    /// Returns the classes with too few held-out labels for [`SetRule::LacByClass`](calmix_metrics::held_out::SetRule): they are
    /// in every set. Empty for other rules.
    pub fn scarce_classes(&self) -> &[ScarceClass] {
        self.rules.as_ref().map_or(&[], |rules| &rules.scarce)
    }

    /// Returns the score threshold at or above which the model answers; `None` if no threshold reaches the precision.
    pub fn answers(&self) -> Option<&AnswerThreshold> {
        self.rules.as_ref()?.answers.as_ref()
    }

    /// Returns whether the model abstains from an image with this [score](calmix_metrics::calibrator::Calibrator::answer_score);
    /// `None` if no labels were held out. If no threshold reaches the precision, the model abstains from every image.
    pub fn abstains(&self, score: f64) -> Option<bool> {
        let rules = self.rules.as_ref()?;
        Some(rules.answers.is_none_or(|answers| score < answers.threshold))
    }

    /// Explains which guarantees the model cannot give, one sentence each.
    pub fn missing(&self) -> Vec<String> {
        let sets = self.missing_sets();
        // Without held-out labels, the same sentence applies to both.
        let answers = self.missing_answers().filter(|sentence| sets.as_ref() != Some(sentence));
        sets.into_iter().chain(answers).collect()
    }

    /// Explains why prediction sets have no coverage guarantee, or only by containing all classes; `None` otherwise.
    pub fn missing_sets(&self) -> Option<String> {
        let Some(rules) = &self.rules else { return Some(self.without_labels()) };
        let coverage = percent(self.coverage);
        match &rules.sets {
            PredictionSets::Marginal(rule) if rule.threshold.is_none() => Some(format!(
                "{} are too few for a coverage of {coverage}: every prediction set contains all classes",
                rules.counted()
            )),
            PredictionSets::Marginal(rule) if rule.threshold == Some(HeldOut::MAX_SCORE) => Some(format!(
                "too many of the {} are the only ones of their class, which was unknown when they were predicted, for a \
                 coverage of {coverage}: every prediction set contains all classes; label another sample{} of {}",
                rules.counted(),
                rules.other_group(),
                class_list(&rules.unseen)
            )),
            PredictionSets::ByClass(rule) if !rules.scarce.is_empty() => {
                let named = rules.scarce.iter();
                let named =
                    named.map(|scarce| format!("{} ({} more)", shown(&scarce.class), scarce.missing_labels));
                let what = if rules.is_grouped() { "groups of held-out labels" } else { "held-out labels" };
                Some(format!(
                    "a coverage of {coverage} for each class needs {} {what} per class; classes with fewer are in \
                     every prediction set: {}",
                    rule.min_labels(),
                    list(named, MAX_NAMED_CLASSES)
                ))
            }
            PredictionSets::Marginal(_) | PredictionSets::ByClass(_) => None,
        }
    }

    /// Explains why the model always abstains; `None` if a threshold reaches the precision.
    pub fn missing_answers(&self) -> Option<String> {
        let Some(rules) = &self.rules else { return Some(self.without_labels()) };
        if rules.answers.is_some() {
            return None;
        }
        let counted = rules.counted();
        let needed = min_labels(self.precision, HeldOut::DELTA);
        let precision = percent(self.precision);
        let why = if rules.groups < needed {
            let groups = if rules.is_grouped() { " groups" } else { "" };
            format!(
                "{counted} are too few for a precision of {precision}, which needs at least {needed}{groups}, all \
                 of them right"
            )
        } else if rules.unseen.is_empty() {
            format!("no confidence threshold reaches {precision} precision on the {counted}")
        } else {
            format!(
                "no confidence threshold reaches {precision} precision on the {counted} (the only ones of their class count \
                 as wrong: {})",
                class_list(&rules.unseen)
            )
        };
        Some(format!("{why}: the model always abstains"))
    }

    fn without_labels(&self) -> String {
        format!("{}, so there are no prediction sets, and the model cannot abstain", self.reason)
    }
}

impl HeldOutRules {
    fn is_grouped(&self) -> bool {
        self.groups < self.labels
    }

    /// Formats the number of labels and of their groups for a message.
    fn counted(&self) -> String {
        if self.is_grouped() {
            format!("{} held-out labels in {} groups", self.labels, self.groups)
        } else {
            format!("{} held-out labels", self.labels)
        }
    }

    fn other_group(&self) -> &'static str {
        if self.is_grouped() { ", of another group," } else { "" }
    }
}

/// Returns the classes that no out-of-fold prediction could name.
pub(crate) fn unseen_classes(held_out: &HeldOut, classes: &[String]) -> Vec<String> {
    let name = |class: u32| classes.get(class as usize).cloned();
    held_out.unseen_classes().into_iter().filter_map(name).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels with scores from one down in equal steps, all of the first class but the last `others`, which are of the second.
    fn held_out(n: usize, others: usize, right: impl Fn(usize) -> bool) -> HeldOut {
        let right: Vec<bool> = (0..n).map(right).collect();
        let wrongness: Vec<f64> = right.iter().map(|&right| if right { 0.0 } else { 0.75 }).collect();
        HeldOut {
            label: (0..n).map(|row| u32::from(row >= n - others)).collect(),
            answer: (0..n).map(|row| 1.0 - row as f64 / n as f64).collect(),
            right,
            lac: wrongness.clone(),
            aps: wrongness,
            ..HeldOut::default()
        }
    }

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|class| format!("class {class}")).collect()
    }

    fn guarantee(held_out: &HeldOut, classes: usize, options: &ModelOptions) -> Guarantee {
        Guarantee::new(Some(held_out), &names(classes), options).unwrap()
    }

    #[test]
    fn shares_out_of_range_are_refused() {
        let sound = ModelOptions::default();
        assert_eq!(Guarantee::check(&sound), Ok(()));
        for share in [-0.1, 0.0, 1.0, 1.5, f64::NAN] {
            for (what, options) in [
                ("coverage", ModelOptions { coverage: share, ..sound }),
                ("precision", ModelOptions { precision: share, ..sound }),
            ] {
                let refused = Guarantee::check(&options).unwrap_err().to_string();
                assert!(refused.contains(what), "{share}: {refused}");
            }
        }
    }

    #[test]
    fn without_labels_one_sentence_says_why() {
        let mut contradictory = held_out(30, 0, |_| true);
        contradictory.lac.pop();
        for (labels, why) in [
            (None, "no labels were held out from training"),
            (Some(HeldOut::default()), "no labels were held out from training"),
            (Some(contradictory), "the held-out labels in model.json contradict each other"),
        ] {
            let guarantee = Guarantee::new(labels.as_ref(), &names(2), &ModelOptions::default()).unwrap();
            let sentence = format!("{why}, so there are no prediction sets, and the model cannot abstain");
            assert_eq!(guarantee.missing(), [sentence]);
            assert_eq!((guarantee.sets(), guarantee.answers(), guarantee.abstains(9.0)), (None, None, None));
            assert_eq!(guarantee.scarce_classes(), []);
        }
    }

    #[test]
    fn model_abstains_below_its_threshold() {
        // The upper half is right, every second one of the lower half is wrong.
        let labels = held_out(200, 0, |row| row < 100 || row % 2 == 0);
        let guarantee = guarantee(&labels, 2, &ModelOptions::default());
        assert_eq!(guarantee.missing(), [""; 0]);
        let threshold = guarantee.answers().unwrap().threshold;
        assert_eq!(guarantee.abstains(threshold), Some(false));
        assert_eq!(guarantee.abstains(threshold.next_down()), Some(true));
        // A quarter is wrong with a score of 0.75, so a class is in a set for 90% if its probability is at least 0.25.
        let sets = guarantee.sets().unwrap();
        assert_eq!(sets.set(&[0.7, 0.3], 0), [0, 1]);
        assert_eq!(sets.set(&[0.8, 0.2], 0), [0]);
    }

    #[test]
    fn few_labels_are_named_with_the_number_that_is_needed() {
        let options = ModelOptions::default();
        let few = guarantee(&held_out(8, 0, |_| true), 2, &options);
        assert_eq!(
            few.missing(),
            [
                "8 held-out labels are too few for a coverage of 90%: every prediction set contains all classes",
                "8 held-out labels are too few for a precision of 90%, which needs at least 22, all of them right: the \
                 model always abstains",
            ]
        );
        assert_eq!((few.answers(), few.abstains(f64::MAX)), (None, Some(true)));
        // 9 labels are enough for sets, and 22 for answers.
        assert_eq!(guarantee(&held_out(9, 0, |_| true), 2, &options).missing_sets(), None);
        let half =
            guarantee(&held_out(22, 0, |row| row % 2 == 0), 2, &ModelOptions { precision: 0.901, ..options });
        assert_eq!(
            half.missing_answers().unwrap(),
            "22 held-out labels are too few for a precision of 90.1%, which needs at least 23, all of them right: the \
             model always abstains"
        );
        let half = guarantee(&held_out(22, 0, |row| row % 2 == 0), 2, &options);
        assert_eq!(
            half.missing(),
            [
                "no confidence threshold reaches 90% precision on the 22 held-out labels: the model always abstains"
            ]
        );
    }

    #[test]
    fn classes_with_few_labels_are_named() {
        let by_class = ModelOptions { sets: SetRule::LacByClass, ..ModelOptions::default() };
        let labels = held_out(40, 4, |_| true);
        let two = guarantee(&labels, 2, &by_class);
        assert_eq!(two.scarce_classes(), [ScarceClass { class: "class 1".to_owned(), missing_labels: 5 }]);
        assert_eq!(
            two.missing_sets().unwrap(),
            "a coverage of 90% for each class needs 9 held-out labels per class; classes with fewer are in every \
             prediction set: class 1 (5 more)"
        );
        assert_eq!(guarantee(&labels, 1, &by_class).missing_sets(), None);
        // The other rules do not need labels of every class.
        assert_eq!(guarantee(&labels, 2, &ModelOptions::default()).scarce_classes(), []);
        // The first class has enough, so 21 classes have 20 to name.
        for (classes, end) in [(21, "class 20 (9 more)"), (22, "class 20 (9 more), …")] {
            let sentence = guarantee(&labels, classes, &by_class).missing_sets().unwrap();
            assert!(sentence.ends_with(end), "{sentence}");
        }
    }

    #[test]
    fn classes_with_one_label_are_named() {
        let mut labels = held_out(40, 4, |_| true);
        for (row, label) in [(36, 1), (37, 2), (38, 3), (39, 4)] {
            labels.label[row] = label;
            labels.right[row] = false;
            labels.lac[row] = HeldOut::MAX_SCORE;
            labels.aps[row] = HeldOut::MAX_SCORE;
        }
        let guarantee = guarantee(
            &labels,
            5,
            &ModelOptions { coverage: 0.91, precision: 0.95, ..ModelOptions::default() },
        );
        assert_eq!(
            guarantee.missing(),
            [
                "too many of the 40 held-out labels are the only ones of their class, which was unknown when they were \
                 predicted, for a coverage of 91%: every prediction set contains all classes; label another sample of \
                 class 1, class 2, class 3, class 4",
                "40 held-out labels are too few for a precision of 95%, which needs at least 45, all of them right: the model \
                 always abstains",
            ]
        );
        labels.answer.reverse();
        let options = ModelOptions { coverage: 0.85, ..ModelOptions::default() };
        let wrong_first = Guarantee::new(Some(&labels), &names(5), &options).unwrap();
        assert_eq!(
            wrong_first.missing(),
            [
                "no confidence threshold reaches 90% precision on the 40 held-out labels (the only ones of their class count \
                 as wrong: class 1, class 2, class 3, class 4): the model always abstains"
            ]
        );
    }

    #[test]
    fn groups_are_counted_instead_of_labels() {
        let mut labels = held_out(40, 0, |_| true);
        labels.group = (0..40).map(|row| row / 5).collect();
        let few = guarantee(&labels, 2, &ModelOptions::default());
        assert_eq!(
            few.missing(),
            [
                "40 held-out labels in 8 groups are too few for a coverage of 90%: every prediction set contains all classes",
                "40 held-out labels in 8 groups are too few for a precision of 90%, which needs at least 22 groups, all of \
                 them right: the model always abstains",
            ]
        );
        let by_class = ModelOptions { sets: SetRule::LacByClass, ..ModelOptions::default() };
        assert!(
            guarantee(&labels, 1, &by_class)
                .missing_sets()
                .unwrap()
                .contains("9 groups of held-out labels per class")
        );
    }
}
