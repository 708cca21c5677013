//! The numbers that `calmix monitor` prints, writes as JSON and draws.

use serde::Serialize;

/// The outputs of a model, compared with its reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Monitoring {
    /// The folder of the run.
    pub run: String,
    pub classes: Vec<String>,
    /// The batches in their order.
    pub batches: Vec<MonitoredBatch>,
    /// The first batch after which the alarm was raised, from 1; `None` without an alarm.
    pub alarm: Option<usize>,
    /// What had changed by then.
    pub changed: Option<ChangeKind>,
    /// Why samples were not compared with a reference; `None` if they were.
    pub not_compared: Option<String>,
    /// The error of the rows whose labels were given; `None` without labels.
    pub labelled: Option<LabelledError>,
}

/// What raised the alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Single rows are more, or less, unusual than those of the reference.
    Rows,
    /// The mean of the rows has moved.
    Mean,
}

/// One output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MonitoredBatch {
    pub output: String,
    /// The rows with a prediction.
    pub rows: u64,
    /// The mean probability of being wrong; `None` without rows. It is the error if the probabilities are calibrated for these rows.
    pub estimated_error: Option<f64>,
    /// The mean probability of each class.
    pub mix: Vec<f64>,
    /// The verdict of `calmix predict` on this batch alone.
    pub verdict: Option<String>,
    /// The share of rows that are stranger than 95% of the reference, of which 5% are expected.
    pub strange: Option<f64>,
    /// The common logarithm of the capital after this batch; 2 is the alarm.
    pub log10_capital: Option<f64>,
    /// The highest such logarithm so far.
    pub log10_highest: Option<f64>,
}

/// The error of labelled rows that were drawn at random.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelledError {
    pub labels: u64,
    pub wrong: u64,
    /// The smallest and the largest share of errors, each except with a probability of 5%, after however many labels.
    pub low: f64,
    pub high: f64,
}
