//! Example predictions: the most confident mistakes and the least confident hits.

use calmix_metrics::error::MetricsError;
use calmix_metrics::predictions::Predictions;
use calmix_run::tensor_files::examples::{ExampleRows, Thumbnails};
use serde::Serialize;

use super::view::{DataTable, ExamplePrediction, ImageRow, PlotView, TableCell};
use crate::report::{BeforeAfter, TopPredictions};

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Examples {
    /// The most confident mistakes, in descending order of confidence.
    pub mistakes: Vec<ExamplePrediction>,
    /// The least confident hits, in ascending order of confidence.
    pub hits: Vec<ExamplePrediction>,
}

impl Examples {
    /// Selects the examples among these predictions, with the thumbnails of the run.
    ///
    /// # Errors
    /// If labels and logits differ in number, or a logit is not finite.
    pub fn of(
        predictions: &Predictions,
        top_predictions: &BeforeAfter<TopPredictions>,
        thumbnails: Option<&Thumbnails>,
    ) -> Result<Self, MetricsError> {
        let name = |class: u32| predictions.classes.get(class as usize).cloned().unwrap_or_default();
        let example = |row: usize| {
            let id = predictions.ids[row];
            let found = thumbnails.and_then(|thumbnails| thumbnails.get(id));
            ExamplePrediction {
                id,
                name: found.map(|(name, _)| name.to_owned()),
                label: name(predictions.labels[row]),
                predicted: name(top_predictions.before.predicted[row]),
                confidence: top_predictions.before.top_label.confidence()[row],
                calibrated: top_predictions.after.as_ref().map(|after| after.top_label.confidence()[row]),
                images: found.map(|(_, images)| images.map(<[u8]>::to_vec)),
            }
        };
        let rows = ExampleRows::of(predictions)?;
        let all = |rows: &[usize]| rows.iter().map(|&row| example(row)).collect::<Vec<_>>();
        let [mut mistakes, mut hits] = [all(&rows.mistakes), all(&rows.hits)];
        // By the confidence shown on the page, because calibration can change the order.
        mistakes.sort_by(|a, b| b.shown_confidence().total_cmp(&a.shown_confidence()));
        hits.sort_by(|a, b| a.shown_confidence().total_cmp(&b.shown_confidence()));
        Ok(Self { mistakes, hits })
    }
}

/// Shows the examples of a run, as images if it has thumbnails.
pub(super) fn view(examples: &Examples) -> PlotView {
    let Examples { mistakes, hits } = examples;
    let kinds = [("Most confident mistakes", mistakes), ("Least confident hits", hits)];
    let row = |kind: &str, example: &ExamplePrediction| {
        vec![
            TableCell::Text(kind.to_owned()),
            TableCell::Text(example.name.clone().unwrap_or_else(|| format!("sample {}", example.id))),
            TableCell::Text(example.label.clone()),
            TableCell::Text(example.predicted.clone()),
            TableCell::Share(example.confidence),
            TableCell::share(example.calibrated),
        ]
    };
    let rows = kinds.iter().flat_map(|(kind, of)| of.iter().map(|example| row(kind, example)));
    let images = kinds.iter().filter(|(_, of)| of.iter().any(|example| example.images.is_some()));
    PlotView {
        name: "examples".to_owned(),
        title: "Which samples does it get wrong?".to_owned(),
        sentence: "The mistakes with the highest confidence: look for wrong labels and for classes that look alike. And the \
                   correct predictions with the lowest confidence: more labels of such samples help most."
            .to_owned(),
        panels: Vec::new(),
        images: images.map(|&(title, of)| ImageRow { title, examples: of.clone() }).collect(),
        table: DataTable {
            columns: vec!["kind", "sample", "class", "predicted", "confidence", "calibrated confidence"],
            rows: rows.collect(),
        },
    }
}
