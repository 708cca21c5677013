//! Predictions as nodes: from logits to calibrated probabilities, label, confidence, prediction set and abstention.

use calmix_metrics::calibrator::Calibrator;

use crate::calibrator::{WinnerMargins, add_calibrator, largest};
use crate::graph::{Attribute, Graph, Value};
use crate::tensor::{ElementType, Tensor};

/// The thresholds of a model, fixed when it is exported.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds {
    /// For each class, the largest `1 − p` with which it is in a prediction set; infinite if it is in every set.
    pub sets: Vec<f64>,
    /// The uncalibrated log-odds below which the model abstains; infinite if it always abstains.
    pub min_log_odds: f64,
}

/// Adds the outputs `logits`, `probabilities`, `label` and `confidence`; with thresholds also `set` and `abstain`.
pub fn add_decision(
    graph: &mut Graph,
    calibrator: &Calibrator,
    thresholds: Option<&Thresholds>,
    logits: &Value,
    classes: usize,
) {
    let raw_label = winner(graph, logits);
    let raw = WinnerMargins::add(graph, logits, &raw_label, classes);
    let calibrated = add_calibrator(graph, calibrator, logits, &raw, classes);
    let softmax = vec![("axis", Attribute::Int(1))];
    let probabilities = graph.node_with("Softmax", &[&calibrated], softmax);
    // If the calibrator may change the label, compute label and abstention from the calibrated logits.
    let (label, margins) = if calibrator.may_change_labels() {
        let label = winner(graph, &calibrated);
        let margins = WinnerMargins::add(graph, &calibrated, &label, classes);
        (label, margins)
    } else {
        (raw_label, raw)
    };
    let confidence = largest(graph, &probabilities);
    graph.output("logits", logits, ElementType::F32, &[classes]);
    graph.output("probabilities", &probabilities, ElementType::F32, &[classes]);
    let label = without_classes(graph, &label);
    graph.output("label", &label, ElementType::I64, &[]);
    let confidence = without_classes(graph, &confidence);
    graph.output("confidence", &confidence, ElementType::F32, &[]);
    let Some(thresholds) = thresholds else { return };
    // Compare in f64, in which the held-out labels were scored.
    let one = graph.constant(Tensor::f64("one.f64", &[], &[1.0]));
    let wide = graph.cast(&probabilities, ElementType::F64);
    let scores = graph.node("Sub", &[&one, &wide]);
    let limits = graph.constant(Tensor::f64("set.thresholds", &[classes], &thresholds.sets));
    let conforms = graph.node("LessOrEqual", &[&scores, &limits]);
    let set = graph.node("Or", &[&conforms, margins.is_winner()]);
    graph.output("set", &set, ElementType::Bool, &[classes]);
    let odds = margins.log_odds(graph);
    let limit = graph.constant(Tensor::f64("answer.threshold", &[], &[thresholds.min_log_odds]));
    let abstain = graph.node("Less", &[&odds, &limit]);
    let abstain = without_classes(graph, &abstain);
    graph.output("abstain", &abstain, ElementType::Bool, &[]);
}

/// Adds the class of the largest logit, the first of equals, (rows, 1).
fn winner(graph: &mut Graph, logits: &Value) -> Value {
    graph.node_with("ArgMax", &[logits], vec![("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(1))])
}

/// Reshapes (rows, 1) to (rows).
fn without_classes(graph: &mut Graph, x: &Value) -> Value {
    let axes = graph.constant(Tensor::i64("class.axis", &[1], &[1]));
    graph.node("Squeeze", &[x, &axes])
}
