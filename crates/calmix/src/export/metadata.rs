//! The metadata of an exported model: the thresholds of prediction sets and answers, and notes on their guarantees.

use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::conformal::{PredictionSets, Score};
use calmix_metrics::fitted_calibrator::FittedCalibrator;
use calmix_metrics::held_out::{HeldOut, SetRule};
use calmix_onnx::decision::Thresholds;
use calmix_run::model_info::ModelInfo;
use serde_json::{Value, json};

use crate::error::CliError;
use crate::model::options::ModelOptions;
use crate::predict::guarantee::Guarantee;
use crate::predict::prediction_rule::PredictionRule;
use crate::process::version::{COMMIT, VERSION};

/// Returns the notes by key; values other than words and numbers are JSON.
pub(crate) fn metadata(
    rule: &PredictionRule,
    options: &ModelOptions,
) -> Result<Vec<(String, String)>, serde_json::Error> {
    let info = rule.info();
    let mut notes = vec![
        ("calmix_version", json!(VERSION)),
        ("calmix_commit", json!(COMMIT)),
        ("classes", json!(info.classes)),
        ("calibrator", serde_json::to_value(calibrator_of(info))?),
        ("weights_blake3", json!(info.blake3)),
        ("calibration_blake3", json!(info.calibration_blake3)),
        ("reference_blake3", json!(info.reference)),
    ];
    notes.extend(of_input(info)?);
    if let Some(Thresholds { sets, min_log_odds }) = thresholds(rule.guarantee(), info.classes.len()) {
        let finite = |threshold: &f64| threshold.is_finite().then_some(*threshold);
        let by_class: Vec<Option<f64>> = sets.iter().map(finite).collect();
        notes.push(("held_out_labels", json!(info.held_out.as_ref().map_or(0, HeldOut::len))));
        notes.push(("coverage", json!(options.coverage)));
        notes.push(("sets", json!(if options.sets == SetRule::LacByClass { "lac-by-class" } else { "lac" })));
        // null: the class is in every set.
        notes.push(("set_thresholds", json!(by_class)));
        notes.push(("precision", json!(options.precision)));
        // null: the model always abstains.
        notes.push(("answer_threshold", json!(finite(&min_log_odds))));
    }
    let word = |value: Value| match value {
        Value::String(word) => word,
        other => other.to_string(),
    };
    Ok(notes.into_iter().map(|(key, value)| (key.to_owned(), word(value))).collect())
}

/// Returns the notes on the input of the model.
fn of_input(info: &ModelInfo) -> Result<Vec<(&'static str, Value)>, serde_json::Error> {
    let mut notes = Vec::new();
    if let Some((pixels, network)) = info.pixels().zip(info.network_name()) {
        notes.push(("network", json!(network)));
        notes.push(("size", json!(pixels.size)));
        notes.push(("resize", json!(info.resize)));
        notes.push(("filter", json!(info.filter)));
        notes.push(("shrink", json!(info.shrink)));
        notes.push(("mean", json!(pixels.mean)));
        notes.push(("std", json!(pixels.std)));
    }
    if let Some(head) = &info.head {
        notes.push(("features", json!(head.features)));
        if !head.sets.is_empty() {
            notes.push(("feature_sets", json!(head.sets)));
        }
        notes.push(("dimensions", json!(head.dimensions)));
        notes.push(("projection_blake3", json!(head.projection)));
        if !head.backbone.is_empty() {
            notes.push(("backbone_blake3", json!(head.backbone)));
            notes.push(("backbone_precision", serde_json::to_value(head.precision)?));
        }
    }
    Ok(notes)
}

/// Returns the calibrator of a model; the identity if it has none.
pub(super) fn calibrator_of(info: &ModelInfo) -> &Calibrator {
    let fitted: Option<&FittedCalibrator> = info.calibration.as_ref();
    fitted.map_or(&Calibrator::IDENTITY, |fitted| &fitted.calibrator)
}

/// Refuses randomised sets, which a graph cannot compute.
pub(crate) fn check_rule(sets: SetRule) -> Result<(), CliError> {
    if sets == SetRule::Aps {
        let message =
            "--sets aps: these sets are randomised by a hash of the logits, which a graph cannot compute";
        return Err(CliError::invalid(message).hint("--sets lac, or --sets lac-by-class"));
    }
    Ok(())
}

/// Returns the thresholds of a model's guarantees; `None` without held-out labels, or if its sets are randomised.
pub(crate) fn thresholds(guarantee: &Guarantee, classes: usize) -> Option<Thresholds> {
    let sets = match guarantee.sets()? {
        PredictionSets::Marginal(rule) if rule.score != Score::Lac => return None,
        PredictionSets::Marginal(rule) => vec![rule.threshold.unwrap_or(f64::INFINITY); classes],
        PredictionSets::ByClass(rule) => {
            let numbers = (0..).take(classes);
            numbers.map(|class| rule.threshold(class).unwrap_or(f64::INFINITY)).collect()
        }
    };
    let min_log_odds = guarantee.answers().map_or(f64::INFINITY, |answers| answers.threshold);
    Some(Thresholds { sets, min_log_odds })
}
