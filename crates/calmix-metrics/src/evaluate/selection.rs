//! The rules that select the result of a run from its evaluations.

use calmix_core::settings::choice;
use serde::{Deserialize, Serialize};

use crate::evaluate::Evaluation;
use crate::metrics::Metrics;
use crate::predictions::{EvalModel, EvalSet};

choice! {
    /// A rule that selects the result of a run from its evaluations.
    Selection = Last {
        /// The averaged (EMA) model after the last step.
        Last = "last",
        /// The median of each metric over the last evaluations (`evaluate.window`, 20 by default), as in Google's code.
        ///
        /// Each metric has its own median; FixMatch's published results use 20 evaluations of the EMA model.
        Median = "median",
        /// The best model on the labels held out for validation.
        ///
        /// The EMA model with the lowest error, the first of equals.
        BestValidation = "best-validation",
        /// The best model on the test subset, as in USB, TorchSSL and the released code. Its metrics are optimistic, and every
        /// table marks this.
        ///
        /// The EMA model with the lowest error. The metrics are optimistic because the same labels select and evaluate the
        /// model. Published tables do this; here it must be requested, and is marked.
        BestTest = "best-test",
    }
}

/// The selected result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selected {
    /// The evaluated split: test if there is one, otherwise validation, otherwise the out-of-fold labels.
    pub on: EvalSet,
    /// The step of the evaluation; `None` if the result combines several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_step: Option<u64>,
    /// The number of evaluations that it was selected from.
    pub evaluations: u64,
    /// Whether the model was both selected and evaluated on the test split.
    pub chosen_on_test: bool,
    /// The number of evaluated samples.
    #[serde(default)]
    pub samples: u64,
    /// The metrics of the selected model.
    pub metrics: Metrics,
}

/// Selects the result from the evaluations of a run; `None` if they do not include the split that the rule needs.
///
/// The history may contain every evaluation of the run, in order; only those of the EMA model are used, and for the median
/// only the last `window` of them.
pub fn select(rule: Selection, window: usize, history: &[Evaluation]) -> Option<Selected> {
    let of = |split| {
        history
            .iter()
            .filter(move |evaluation| evaluation.model == EvalModel::Ema && evaluation.split == split)
            .collect::<Vec<_>>()
    };
    let out_of_fold = of(EvalSet::OutOfFold);
    let validation = of(EvalSet::Validation);
    let test = of(EvalSet::Test);
    let (on, reported) = if !test.is_empty() {
        (EvalSet::Test, &test)
    } else if !validation.is_empty() {
        (EvalSet::Validation, &validation)
    } else {
        (EvalSet::OutOfFold, &out_of_fold)
    };
    let one = |evaluation: &Evaluation, evaluations: usize| Selected {
        on,
        at_step: Some(evaluation.step),
        evaluations: evaluations as u64,
        chosen_on_test: rule == Selection::BestTest,
        samples: evaluation.samples,
        metrics: evaluation.metrics,
    };
    match rule {
        Selection::Last => reported.last().map(|last| one(last, 1)),
        Selection::Median => {
            let recent = &reported[reported.len().saturating_sub(window)..];
            let metrics: Vec<_> = recent.iter().map(|evaluation| evaluation.metrics.values()).collect();
            let of_values = |metric: usize| median(metrics.iter().map(|values| values[metric]).collect());
            let optional = |of: fn(&Metrics) -> Option<f64>| {
                let values: Option<Vec<f64>> = recent.iter().map(|found| of(&found.metrics)).collect();
                values.map(median)
            };
            Some(Selected {
                on,
                at_step: None,
                evaluations: recent.len() as u64,
                chosen_on_test: false,
                samples: recent.last().map_or(0, |evaluation| evaluation.samples),
                metrics: Metrics {
                    balanced_error: optional(|metrics| metrics.balanced_error),
                    macro_f1: optional(|metrics| metrics.macro_f1),
                    ..Metrics::from_values(std::array::from_fn(of_values))
                },
            })
            .filter(|_| !recent.is_empty())
        }
        Selection::BestValidation => {
            let best = lowest_error(&validation)?;
            let at_best = reported.iter().find(|evaluation| evaluation.step == best.step)?;
            Some(one(at_best, validation.len()))
        }
        Selection::BestTest => lowest_error(&test).map(|best| one(best, test.len())),
    }
}

fn lowest_error<'a>(history: &[&'a Evaluation]) -> Option<&'a Evaluation> {
    history.iter().copied().min_by(|a, b| a.metrics.error.total_cmp(&b.metrics.error))
}

/// Returns the median; for an even number of values, the mean of the middle two.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let at = |i: usize| numbers.get(i).copied().unwrap_or(0.0);
    let n = numbers.len();
    f64::midpoint(at(n.saturating_sub(1) / 2), at(n / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::EDGES;

    fn evaluation(step: u64, split: EvalSet, model: EvalModel, error: f64) -> Evaluation {
        Evaluation {
            step,
            split,
            model,
            samples: 9,
            groups: None,
            skipped: 0,
            edges: EDGES,
            metrics: Metrics { error, ..Metrics::default() },
            class_accuracy: Vec::new(),
            empty_classes: 0,
            by_class: Vec::new(),
            bins: Vec::new(),
            intervals: None,
            calibrated: None,
        }
    }

    /// Validation is best at step 2 and test at step 3; the current weights would beat both.
    fn history() -> Vec<Evaluation> {
        let errors = [(0.4, 0.5), (0.1, 0.3), (0.2, 0.2), (0.1, 0.4)];
        let steps = errors.iter().zip(1..).flat_map(|(&(validation, test), step)| {
            [
                evaluation(step, EvalSet::Validation, EvalModel::Ema, validation),
                evaluation(step, EvalSet::Test, EvalModel::Ema, test),
                evaluation(step, EvalSet::Test, EvalModel::Live, 0.0),
            ]
        });
        steps.collect()
    }

    #[test]
    fn every_rule_reports_the_test_split() {
        let result = |rule| {
            let selected = select(rule, 20, &history()).unwrap();
            assert_eq!(selected.on, EvalSet::Test);
            assert_eq!(selected.chosen_on_test, rule == Selection::BestTest);
            (selected.at_step, selected.evaluations, selected.metrics.error)
        };
        assert_eq!(result(Selection::Last), (Some(4), 1, 0.4));
        assert_eq!(result(Selection::Median), (None, 4, 0.35));
        assert_eq!(result(Selection::BestValidation), (Some(2), 4, 0.3));
        assert_eq!(result(Selection::BestTest), (Some(3), 4, 0.2));
    }

    #[test]
    fn median_uses_the_last_evaluations() {
        let long: Vec<_> = (0..100).map(|i| evaluation(i, EvalSet::Test, EvalModel::Ema, i as f64)).collect();
        let selected = select(Selection::Median, 20, &long).unwrap();
        assert_eq!((selected.evaluations, selected.metrics.error), (20, 89.5));
    }

    #[test]
    fn median_has_optional_metrics_if_all_have_them() {
        let with = |error, balanced_error| {
            let evaluation = evaluation(1, EvalSet::Test, EvalModel::Ema, error);
            Evaluation { metrics: Metrics { balanced_error, ..evaluation.metrics }, ..evaluation }
        };
        let found = |history: &[Evaluation]| select(Selection::Median, 3, history).unwrap().metrics;
        let all = [with(0.1, Some(0.4)), with(0.2, Some(0.2)), with(0.3, Some(0.3))];
        assert_eq!((found(&all).balanced_error, found(&all).macro_f1), (Some(0.3), None));
        assert_eq!(found(&[with(0.1, Some(0.4)), with(0.2, None)]).balanced_error, None);
    }

    #[test]
    fn without_a_split_there_is_no_result() {
        let validation: Vec<_> =
            history().into_iter().filter(|evaluation| evaluation.split == EvalSet::Validation).collect();
        assert_eq!(select(Selection::Last, 20, &validation).unwrap().on, EvalSet::Validation);
        assert_eq!(select(Selection::BestTest, 20, &validation), None);
        let out_of_fold = [evaluation(4, EvalSet::OutOfFold, EvalModel::Ema, 0.1)];
        assert_eq!(select(Selection::Last, 20, &out_of_fold).unwrap().on, EvalSet::OutOfFold);
        assert_eq!(select(Selection::BestValidation, 20, &out_of_fold), None);
        for rule in [Selection::Last, Selection::Median, Selection::BestValidation, Selection::BestTest] {
            assert_eq!(select(rule, 20, &[]), None);
            assert_eq!(serde_json::to_string(&rule).unwrap(), format!("{:?}", rule.word()));
        }
    }
}
