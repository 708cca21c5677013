//! Error and calibration by class.

use calmix_metrics::error::MetricsError;
use calmix_metrics::measure::{ClassRows, ClassScores};
use calmix_metrics::metrics::LEVEL;
use calmix_metrics::predictions::Predictions;
use calmix_metrics::stats::Estimate;
use serde::Serialize;

use super::view::{DataTable, PANEL_WIDTH, PlotView, TableCell};
use crate::report::{BeforeAfter, TopPredictions};
use crate::svg::{Axis, Drawing, Key, shortened};

/// The maximum number of classes to draw; if there are more, those with the highest error are drawn.
const MAX_CLASSES: usize = 30;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassMetrics {
    pub class: String,
    pub samples: usize,
    /// The share of images that are misclassified; `None` without images.
    pub error: Option<f64>,
    /// The lower end of the exact 95% interval of the error (Clopper and Pearson).
    pub error_low: Option<f64>,
    /// The upper end of that interval.
    pub error_high: Option<f64>,
    /// Recall, precision and F1 before calibration.
    #[serde(flatten)]
    pub scores: ClassScores,
    /// The images predicted as this class, before and after calibration.
    pub named: BeforeAfter<PredictedClass>,
}

/// The images predicted as one class.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct PredictedClass {
    pub predictions: usize,
    /// Their mean confidence; `None` without predictions.
    pub confidence: Option<f64>,
    /// The share of correct predictions; `None` without predictions.
    pub right: Option<f64>,
}

/// Computes the metrics of every class, in the order of the classes.
///
/// # Errors
/// If there is not one prediction per label, or a number is not that of a class.
pub fn metrics(
    predictions: &Predictions,
    top_predictions: &BeforeAfter<TopPredictions>,
) -> Result<Vec<ClassMetrics>, MetricsError> {
    let Predictions { classes, labels, groups, .. } = predictions;
    let named = top_predictions.map(|top_predictions| named(top_predictions, classes.len()));
    let predicted = top_predictions.before.predicted.clone();
    let scores = ClassRows::new(labels.clone(), predicted, classes.len())?.scores(groups, LEVEL)?;
    let of = |(number, (class, scores)): (usize, (&String, ClassScores))| ClassMetrics {
        class: class.clone(),
        samples: labels.iter().filter(|&&label| label as usize == number).count(),
        error: scores.recall.map(|recall| 1.0 - recall.estimate),
        error_low: scores.recall.map(|recall| 1.0 - recall.high),
        error_high: scores.recall.map(|recall| 1.0 - recall.low),
        scores,
        named: named.map(|named| named.get(number).copied().unwrap_or_default()),
    };
    Ok(classes.iter().zip(scores).enumerate().map(of).collect())
}

/// Counts the predictions of each class, with their confidence and the number of correct ones.
fn named(top_predictions: &TopPredictions, classes: usize) -> Vec<PredictedClass> {
    let mut sums = vec![(0_usize, 0.0_f64, 0_usize); classes];
    let rows = top_predictions
        .predicted
        .iter()
        .zip(top_predictions.top_label.confidence())
        .zip(top_predictions.top_label.correct());
    for ((&class, &confidence), &right) in rows {
        if let Some((n, sum, hits)) = sums.get_mut(class as usize) {
            (*n, *sum, *hits) = (*n + 1, *sum + confidence, *hits + usize::from(right));
        }
    }
    let mean = |(predictions, sum, hits): (usize, f64, usize)| {
        let some = |value: f64| (predictions > 0).then(|| value / predictions as f64);
        PredictedClass { predictions, confidence: some(sum), right: some(hits as f64) }
    };
    sums.into_iter().map(mean).collect()
}

/// Plots the classes of a run: error, and confidence beside accuracy.
pub(super) fn view(classes: &[ClassMetrics]) -> PlotView {
    let mut drawn: Vec<&ClassMetrics> = classes.iter().collect();
    let of = if drawn.len() > MAX_CLASSES {
        drawn.sort_by(|a, b| b.error.unwrap_or(0.0).total_cmp(&a.error.unwrap_or(0.0)));
        drawn.truncate(MAX_CLASSES);
        format!(" Of {} classes, the {MAX_CLASSES} with the highest error are drawn.", classes.len())
    } else {
        String::new()
    };
    let estimate = |share: Estimate| share.estimate;
    let low = |share: Estimate| share.low;
    let high = |share: Estimate| share.high;
    let row = |class: &ClassMetrics| {
        let before = class.named.before;
        let after = class.named.after.unwrap_or_default();
        vec![
            TableCell::Text(class.class.clone()),
            TableCell::Count(class.samples as u64),
            TableCell::share(class.scores.recall.map(estimate)),
            TableCell::share(class.scores.recall.map(low)),
            TableCell::share(class.scores.recall.map(high)),
            TableCell::Count(before.predictions as u64),
            TableCell::share(class.scores.precision.map(estimate)),
            TableCell::share(class.scores.precision.map(low)),
            TableCell::share(class.scores.precision.map(high)),
            TableCell::share(class.scores.f1),
            TableCell::share(before.confidence),
            TableCell::share(after.right),
            TableCell::share(after.confidence),
        ]
    };
    let empty = classes.iter().filter(|class| class.samples == 0).count() as u64;
    let left_out = match empty {
        0 => String::new(),
        _ => format!(
            " {} no samples: their recall is undefined, and the balanced error leaves them out.",
            if empty == 1 { "One class has".to_owned() } else { format!("{empty} classes have") }
        ),
    };
    PlotView {
        name: "classes".to_owned(),
        title: "Which classes are hard, and where is the confidence wrong?".to_owned(),
        sentence: format!(
            "Left: the share of each class's samples that is misclassified, with 95% confidence intervals. Right: for the \
             samples predicted as each class, the mean confidence and the share that is right; the two should be equal. The \
             table has recall, precision and F1.{of}{left_out}"
        ),
        panels: vec![errors(&drawn), confidences(&drawn)],
        images: Vec::new(),
        table: DataTable {
            columns: vec![
                "class",
                "samples",
                "recall",
                "recall, 95% CI low",
                "recall, 95% CI high",
                "predictions",
                "precision",
                "precision, 95% CI low",
                "precision, 95% CI high",
                "F1",
                "confidence",
                "precision, calibrated",
                "calibrated confidence",
            ],
            rows: classes.iter().map(row).collect(),
        },
    }
}

/// The height of a row and of the space above the first, in pixels.
const ROW: f64 = 19.0;
const TOP: f64 = 28.0;
const NAME: usize = 16;

/// Draws a panel with a row for each class; returns the drawing, and a function from a share to its x position.
fn rows(
    title: &str,
    drawn: &[&ClassMetrics],
    axis: &Axis,
    legend: &[Key],
) -> (Drawing, impl Fn(f64) -> f64 + use<>) {
    let longest = drawn.iter().map(|class| shortened(&class.class, NAME).chars().count()).max().unwrap_or(1);
    let left = 12.0 + 7.2 * longest as f64;
    let bottom = TOP + ROW * drawn.len() as f64;
    let width = PANEL_WIDTH - left - 18.0;
    let mut drawing = Drawing::new(title, PANEL_WIDTH, bottom + 40.0 + 16.0 * legend.len() as f64);
    drawing.text((left, 16.0), "h", title);
    let (from, to) = axis.range;
    let x = move |share: f64| left + width * ((share - from) / (to - from)).clamp(0.0, 1.0);
    for (at, text) in &axis.ticks {
        drawing.line(&[(x(*at), TOP), (x(*at), bottom)], "grid");
        drawing.text((x(*at), bottom + 14.0), "m mid", text);
    }
    for (at, class) in drawn.iter().enumerate() {
        let middle = TOP + ROW * (at as f64 + 0.5);
        drawing.text((left - 6.0, middle + 4.0), "m end", &shortened(&class.class, NAME));
    }
    drawing.rectangle((left, TOP), (width, bottom - TOP), "frame");
    drawing.text((left + width / 2.0, bottom + 31.0), "mid", &axis.label);
    for (at, key) in legend.iter().enumerate() {
        let middle = bottom + 44.0 + 16.0 * at as f64;
        drawing.dot((left + 6.0, middle), 3.4, &format!("f{}", key.tone));
        drawing.text((left + 18.0, middle + 4.0), "", &key.text);
    }
    (drawing, x)
}

fn errors(drawn: &[&ClassMetrics]) -> Drawing {
    let max_error = drawn.iter().filter_map(|class| class.error_high).fold(0.0, f64::max);
    let axis = Axis::share_up_to("misclassified samples of the class, %", max_error);
    let (mut drawing, x) = rows("Error by class", drawn, &axis, &[]);
    for (at, class) in drawn.iter().enumerate() {
        let middle = TOP + ROW * (at as f64 + 0.5);
        if let (Some(error), Some(low), Some(high)) = (class.error, class.error_low, class.error_high) {
            drawing.line(&[(x(low), middle), (x(high), middle)], "l0");
            drawing.dot((x(error), middle), 3.4, "f0");
        }
    }
    drawing
}

fn confidences(drawn: &[&ClassMetrics]) -> Drawing {
    let is_mapped = drawn.iter().any(|class| class.named.after.is_some());
    let confidence_label = if is_mapped { "mean confidence, calibrated" } else { "mean confidence" };
    let legend = [(confidence_label, 1), ("share that is right", 0)];
    let legend = legend.map(|(text, tone)| Key { text: text.to_owned(), tone });
    let axis = Axis::share("samples predicted as the class, %");
    let (mut drawing, x) = rows("Confidence by class", drawn, &axis, &legend);
    for (at, class) in drawn.iter().enumerate() {
        let middle = TOP + ROW * (at as f64 + 0.5);
        let named = class.named.last();
        if let (Some(confidence), Some(right)) = (named.confidence, named.right) {
            drawing.line(&[(x(confidence), middle), (x(right), middle)], "ideal");
            drawing.dot((x(confidence), middle), 3.4, "f1");
            drawing.dot((x(right), middle), 3.4, "f0");
        }
    }
    drawing
}
