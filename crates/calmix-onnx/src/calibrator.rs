//! Calibrators as nodes, from logits to calibrated logits.

use calmix_metrics::calibrator::isotonic::Isotonic;
use calmix_metrics::calibrator::{Calibrator, MAX_SHARPNESS, confidence_limits};

use crate::graph::{Attribute, Graph, Value};
use crate::tensor::{ElementType, Tensor};

/// The number of unrolled steps of Newton's method. The library iterates until convergence, which a graph cannot.
const NEWTON_STEPS: usize = 16;

/// The logits of a row relative to the largest one, in f64. Abstention and isotonic regression are computed from them.
#[derive(Debug)]
pub struct WinnerMargins {
    /// Whether a class is the winner, (rows, classes).
    is_winner: Value,
    /// The logits minus the winner's; zero for the winner itself.
    below: Value,
    /// The largest of `below`, without the winner.
    second: Value,
    /// `below − second`, zero for the winner itself.
    shifted: Value,
    counts: Value,
}

impl WinnerMargins {
    /// Adds the nodes for logits whose winner is `label`, (rows, 1).
    pub fn add(graph: &mut Graph, logits: &Value, label: &Value, classes: usize) -> Self {
        let numbers: Vec<i64> = (0..).take(classes).collect();
        let numbers = graph.constant(Tensor::i64("classes", &[classes], &numbers));
        let is_winner = graph.node("Equal", &[label, &numbers]);
        let zero = scalar(graph, "zero.f64", 0.0);
        let one = scalar(graph, "one.f64", 1.0);
        let lowest = scalar(graph, "lowest.f64", f64::MIN);
        let logits = graph.cast(logits, ElementType::F64);
        let top = largest(graph, &logits);
        let below = graph.node("Sub", &[&logits, &top]);
        let others = graph.node("Where", &[&is_winner, &lowest, &below]);
        let second = largest(graph, &others);
        let below = graph.node("Where", &[&is_winner, &zero, &below]);
        let shifted = graph.node("Sub", &[&below, &second]);
        let shifted = graph.node("Where", &[&is_winner, &zero, &shifted]);
        let counts = graph.node("Where", &[&is_winner, &zero, &one]);
        Self { is_winner, below, second, shifted, counts }
    }

    /// Returns `is_winner`, (rows, classes).
    pub fn is_winner(&self) -> &Value {
        &self.is_winner
    }

    /// Adds the log-odds of the winner, −ln Σ exp(below), (rows, 1).
    pub fn log_odds(&self, graph: &mut Graph) -> Value {
        let masses = self.masses(graph, &self.shifted);
        let mass = sum(graph, &masses);
        let logarithm = graph.node("Log", &[&mass]);
        let total = graph.node("Add", &[&logarithm, &self.second]);
        graph.node("Neg", &[&total])
    }

    /// Adds `exp(exponents)` of each class; zero for the winner.
    fn masses(&self, graph: &mut Graph, exponents: &Value) -> Value {
        let masses = graph.node("Exp", &[exponents]);
        graph.node("Mul", &[&masses, &self.counts])
    }
}

/// Adds a calibrator; returns the calibrated logits. `margins` are those of the logits.
pub fn add_calibrator(
    graph: &mut Graph,
    calibrator: &Calibrator,
    logits: &Value,
    margins: &WinnerMargins,
    classes: usize,
) -> Value {
    match calibrator {
        Calibrator::Temperature { temperature } => {
            let temperature = Tensor::f32("temperature", &[], &[temperature.value() as f32]);
            let temperature = graph.constant(temperature);
            graph.node("Div", &[logits, &temperature])
        }
        Calibrator::Vector(map) => {
            let numbers = |numbers: &[f64]| numbers.iter().map(|&number| number as f32).collect::<Vec<_>>();
            let scale = Tensor::f32("calibrator.scale", &[map.scale().len()], &numbers(map.scale()));
            let bias = Tensor::f32("calibrator.bias", &[map.bias().len()], &numbers(map.bias()));
            let scale = graph.constant(scale);
            let bias = graph.constant(bias);
            let scaled = graph.node("Mul", &[logits, &scale]);
            graph.node("Add", &[&scaled, &bias])
        }
        Calibrator::Isotonic(map) => {
            let odds = isotonic_log_odds(graph, map, margins, classes);
            let sharpness = sharpness(graph, margins, &odds);
            let calibrated = graph.node("Mul", &[&margins.below, &sharpness]);
            graph.cast(&calibrated, ElementType::F32)
        }
    }
}

/// Adds the winner's log-odds after isotonic regression, (rows, 1).
fn isotonic_log_odds(graph: &mut Graph, map: &Isotonic, margins: &WinnerMargins, classes: usize) -> Value {
    let one = scalar(graph, "one.f64", 1.0);
    // The confidence of the winner: 1 / (1 + exp(−log-odds)).
    let odds = margins.log_odds(graph);
    let confidence = graph.node("Sigmoid", &[&odds]);
    // An extra knot on either side makes the function constant beyond its own knots.
    let knots: Vec<(f64, f64)> = map.knots().collect();
    let first = knots.first().map(|&(_, value)| (-1.0, value));
    let last = knots.last().map(|&(_, value)| (2.0, value));
    let knots: Vec<(f64, f64)> = first.into_iter().chain(knots).chain(last).collect();
    let scores: Vec<f64> = knots.iter().map(|&(score, _)| score).collect();
    let values: Vec<f64> = knots.iter().map(|&(_, value)| value).collect();
    let scores = graph.constant(Tensor::f64("calibrator.scores", &[knots.len()], &scores));
    let values = graph.constant(Tensor::f64("calibrator.values", &[knots.len()], &values));
    let reached = graph.node("LessOrEqual", &[&scores, &confidence]);
    let reached = graph.cast(&reached, ElementType::I64);
    let after = sum(graph, &reached);
    let step = graph.constant(Tensor::i64("one.i64", &[], &[1]));
    let before = graph.node("Sub", &[&after, &step]);
    let [x0, x1] = [&before, &after].map(|place| graph.node("Gather", &[&scores, place]));
    let [y0, y1] = [&before, &after].map(|place| graph.node("Gather", &[&values, place]));
    let along = graph.node("Sub", &[&confidence, &x0]);
    let gap = graph.node("Sub", &[&x1, &x0]);
    let share = graph.node("Div", &[&along, &gap]);
    let rise = graph.node("Sub", &[&y1, &y0]);
    let rise = graph.node("Mul", &[&rise, &share]);
    let value = graph.node("Add", &[&y0, &rise]);
    let (min, max) = confidence_limits(map, classes);
    let min = scalar(graph, "calibrator.least", min);
    let max = scalar(graph, "calibrator.most", max);
    let wanted = graph.node("Max", &[&value, &min]);
    let wanted = graph.node("Min", &[&wanted, &max]);
    let rest = graph.node("Sub", &[&one, &wanted]);
    let odds = graph.node("Div", &[&wanted, &rest]);
    graph.node("Log", &[&odds])
}

/// Adds the β at which softmax(β·logits) gives the winner these log-odds, by Newton's method from zero as in the library.
fn sharpness(graph: &mut Graph, margins: &WinnerMargins, odds: &Value) -> Value {
    let zero = scalar(graph, "zero.f64", 0.0);
    let one = scalar(graph, "one.f64", 1.0);
    let flattest = scalar(graph, "calibrator.flattest", 1e-300);
    let sharpest = scalar(graph, "calibrator.sharpest", MAX_SHARPNESS);
    let mut beta = zero.clone();
    for _ in 0..NEWTON_STEPS {
        let exponents = graph.node("Mul", &[&margins.shifted, &beta]);
        let masses = margins.masses(graph, &exponents);
        let mass = sum(graph, &masses);
        let weighted = graph.node("Mul", &[&masses, &margins.below]);
        let slope = sum(graph, &weighted);
        let slope = graph.node("Neg", &[&slope]);
        let slope = graph.node("Div", &[&slope, &mass]);
        let slope = graph.node("Max", &[&slope, &flattest]);
        // The logarithm of the mass is that of the shifted logits' mass plus β·second.
        let logarithm = graph.node("Log", &[&mass]);
        let shift = graph.node("Mul", &[&margins.second, &beta]);
        let excess = graph.node("Add", &[&logarithm, &shift]);
        let excess = graph.node("Add", &[&excess, odds]);
        let excess = graph.node("Max", &[&excess, &zero]);
        let step = graph.node("Div", &[&excess, &slope]);
        let next = graph.node("Add", &[&beta, &step]);
        beta = graph.node("Min", &[&next, &sharpest]);
    }
    let is_positive = graph.node("Greater", &[&beta, &zero]);
    graph.node("Where", &[&is_positive, &beta, &one])
}

fn scalar(graph: &mut Graph, name: &str, number: f64) -> Value {
    graph.constant(Tensor::f64(name, &[], &[number]))
}

/// Adds the sum over the classes, (rows, 1).
fn sum(graph: &mut Graph, x: &Value) -> Value {
    let axes = graph.constant(Tensor::i64("class.axis", &[1], &[1]));
    graph.node_with("ReduceSum", &[x, &axes], vec![("keepdims", Attribute::Int(1))])
}

/// Adds the maximum over the classes, (rows, 1).
pub(crate) fn largest(graph: &mut Graph, x: &Value) -> Value {
    graph.reduce("ReduceMax", x, &[1], true)
}
