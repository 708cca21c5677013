//! The reliability diagram: accuracy against confidence, in bins.

use calmix_metrics::measure::{Binning, TopLabel, ece, reliability_bins};
use calmix_metrics::metrics::{LEVEL, MIN_SAMPLES_FOR_ECE};
use calmix_metrics::stats::clopper_pearson;
use serde::Serialize;

use super::view::{DataTable, PANEL_WIDTH, PlotView, RunData, TableCell};
use crate::report::BeforeAfter;
use crate::svg::{Axis, Key, Plot, PlotMark};

/// Fifteen bins of equal width, and the metrics over all of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReliabilityDiagram {
    pub samples: usize,
    pub mean_confidence: f64,
    /// The share of correct predictions.
    pub accuracy: f64,
    /// The expected calibration error of these bins.
    pub ece_15: f64,
    /// The bins, the empty ones too.
    pub bins: Vec<BinWithInterval>,
}

/// A bin with the exact interval of its accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BinWithInterval {
    pub lower: f64,
    pub upper: f64,
    pub count: usize,
    /// Their mean confidence; `None` without predictions.
    pub confidence: Option<f64>,
    /// The share of correct predictions; `None` without predictions.
    pub accuracy: Option<f64>,
    /// The lower end of the exact 95% interval of the accuracy (Clopper and Pearson).
    pub accuracy_low: Option<f64>,
    /// The upper end of that interval.
    pub accuracy_high: Option<f64>,
}

impl ReliabilityDiagram {
    pub fn of(predictions: &TopLabel) -> Self {
        let bins = reliability_bins(predictions, Binning::default());
        let ece_15 = ece(&bins);
        let banded = bins.iter().map(|bin| {
            let some = |value: f64| (bin.count > 0).then_some(value);
            let right = (bin.accuracy * bin.count as f64).round() as usize;
            let interval = clopper_pearson(right, bin.count, LEVEL).ok();
            BinWithInterval {
                lower: bin.lower,
                upper: bin.upper,
                count: bin.count,
                confidence: some(bin.confidence),
                accuracy: some(bin.accuracy),
                accuracy_low: interval.map(|interval| interval.low),
                accuracy_high: interval.map(|interval| interval.high),
            }
        });
        Self {
            samples: predictions.len(),
            mean_confidence: predictions.confidence().iter().sum::<f64>() / predictions.len().max(1) as f64,
            accuracy: predictions.accuracy(),
            ece_15,
            bins: banded.collect(),
        }
    }
}

/// Plots the diagrams before and after calibration, each in a panel with all runs.
pub(super) fn view(diagrams: &[RunData<'_, BeforeAfter<ReliabilityDiagram>>]) -> Option<PlotView> {
    let side = |title: &str, pick: fn(&BeforeAfter<ReliabilityDiagram>) -> Option<&ReliabilityDiagram>| {
        let shown: Vec<_> = diagrams
            .iter()
            .filter_map(|&RunData { tone, name, data }| Some(RunData { tone, name, data: pick(data)? }))
            .collect();
        (!shown.is_empty()).then(|| panel(title, &shown))
    };
    let before = side("Before calibration", |both| Some(&both.before))?;
    let after = side("After calibration", |both| both.after.as_ref());
    let mut rows = Vec::new();
    for &RunData { name, data, .. } in diagrams {
        for (when, diagram) in data.named() {
            rows.extend(diagram.bins.iter().filter(|bin| bin.count > 0).map(|bin| {
                vec![
                    TableCell::Text(name.to_owned()),
                    TableCell::Text(when.to_owned()),
                    TableCell::Share(bin.lower),
                    TableCell::Share(bin.upper),
                    TableCell::Count(bin.count as u64),
                    TableCell::share(bin.confidence),
                    TableCell::share(bin.accuracy),
                    TableCell::share(bin.accuracy_low),
                    TableCell::share(bin.accuracy_high),
                ]
            }));
        }
    }
    Some(PlotView {
        name: "reliability".to_owned(),
        title: "Is the confidence calibrated?".to_owned(),
        sentence: "Predictions of similar confidence share a bin. On the dashed line the accuracy of a bin equals its \
                   confidence; below it the model is over-confident, above it under-confident. The band is the 95% \
                   confidence interval of the accuracy; the bars below show the share of predictions in each bin."
            .to_owned(),
        panels: [Some(before), after].into_iter().flatten().collect(),
        images: Vec::new(),
        table: DataTable {
            columns: vec![
                "run",
                "calibration",
                "confidence from",
                "confidence to",
                "samples",
                "mean confidence",
                "accuracy",
                "accuracy, 95% CI low",
                "accuracy, 95% CI high",
            ],
            rows,
        },
    })
}

fn panel(title: &str, shown: &[RunData<'_, ReliabilityDiagram>]) -> crate::svg::Drawing {
    let mut marks = vec![PlotMark::Ideal((0.0, 0.0), (1.0, 1.0))];
    let mut shares = Vec::new();
    let mut legend = Vec::new();
    let max_share = shown
        .iter()
        .flat_map(|RunData { data, .. }| data.bins.iter().map(|bin| share_of(bin, data)))
        .fold(0.0, f64::max);
    for &RunData { tone, name, data: diagram } in shown {
        let points: Vec<_> =
            diagram.bins.iter().filter_map(|bin| Some((bin.confidence?, bin.accuracy?))).collect();
        let interval = diagram
            .bins
            .iter()
            .filter_map(|bin| Some((bin.confidence?, bin.accuracy_low?, bin.accuracy_high?)));
        marks.push(PlotMark::Band { points: interval.collect(), tone });
        marks.push(PlotMark::Line { points: points.clone(), tone });
        marks.push(PlotMark::Dots { points, tone });
        let bars = diagram.bins.iter().filter(|bin| bin.count > 0);
        let width = 1.0 / shown.len() as f64;
        shares.extend(bars.map(|bin| {
            let place = |part: f64| bin.lower + (bin.upper - bin.lower) * (0.06 + 0.88 * part);
            let at = shares_before(shown, tone) * width;
            PlotMark::Bar { from_to: (place(at), place(at + width)), height: share_of(bin, diagram), tone }
        }));
        let summary = format!(
            "confidence {:.1}%, accuracy {:.1}%",
            100.0 * diagram.mean_confidence,
            100.0 * diagram.accuracy
        );
        // With few images, an ECE is mostly noise, but the gap is not.
        let calibration = if diagram.samples as u64 >= MIN_SAMPLES_FOR_ECE {
            format!("ECE {:.1}%", 100.0 * diagram.ece_15)
        } else {
            format!("gap {:+.1} points", 100.0 * (diagram.mean_confidence - diagram.accuracy))
        };
        let name =
            if shown.len() > 1 { format!("{}: ", crate::svg::shortened(name, 22)) } else { String::new() };
        let text = if shown.len() > 1 {
            format!("{name}{calibration}")
        } else {
            format!("{summary}, {calibration}")
        };
        legend.push(Key { text, tone });
    }
    let confidence = "confidence, %";
    let main = Plot { x: Axis::share(confidence), y: Axis::share("accuracy, %"), marks };
    let below =
        Plot { x: Axis::share(confidence), y: Axis::share_up_to("samples, %", max_share), marks: shares };
    Plot::panel(title, PANEL_WIDTH, &[(main, 270.0), (below, 70.0)], &legend)
}

fn shares_before(shown: &[RunData<'_, ReliabilityDiagram>], tone: usize) -> f64 {
    shown.iter().take_while(|other| other.tone != tone).count() as f64
}

fn share_of(bin: &BinWithInterval, diagram: &ReliabilityDiagram) -> f64 {
    bin.count as f64 / diagram.samples.max(1) as f64
}
