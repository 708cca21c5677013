//! The thresholds of prediction sets and answers that an exported model has in it.

use calmix_metrics::conformal::{PredictionSets, Score};
use calmix_metrics::held_out::SetRule;
use calmix_onnx::decision::Thresholds;

use crate::error::CliError;
use crate::predict::guarantee::Guarantee;

/// Refuses a rule whose sets no graph can compute.
///
/// # Errors
/// If the rule is randomised.
pub(crate) fn check_rule(sets: SetRule) -> Result<(), CliError> {
    if sets == SetRule::Aps {
        let message =
            "--sets aps: these sets are randomised by a hash of the logits, which a graph cannot compute";
        return Err(CliError::invalid(message).hint("--sets lac, or --sets lac-by-class"));
    }
    Ok(())
}

/// The thresholds of a model's guarantees; `None` without held-out labels, or if its sets are randomised.
pub(crate) fn thresholds(guarantee: &Guarantee, classes: usize) -> Option<Thresholds> {
    let sets = match guarantee.sets()? {
        PredictionSets::Marginal(rule) if rule.score != Score::Lac => return None,
        PredictionSets::Marginal(rule) => vec![rule.threshold.unwrap_or(f64::INFINITY); classes],
        PredictionSets::ByClass(rule) => {
            let numbers = (0..).take(classes);
            numbers.map(|class| rule.threshold(class).unwrap_or(f64::INFINITY)).collect()
        }
    };
    let answers = guarantee.answers().map_or(f64::INFINITY, |answers| answers.threshold);
    Some(Thresholds { sets, answers })
}
