//! The risk-coverage curve: the share of wrong predictions if the model abstains below a confidence threshold.

use calmix_metrics::measure::{TopLabel, aurc, coverage_curve};
use serde::Serialize;

use super::view::{DataTable, PANEL_WIDTH, PlotView, RunData, TableCell, legend_name};
use crate::report::BeforeAfter;
use crate::svg::{Axis, Key, Plot, PlotMark};

/// The maximum number of points on a curve, equally spaced in coverage.
const MAX_POINTS: usize = 200;

/// The risk at equally spaced coverages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoverageCurve {
    pub aurc: f64,
    /// The highest threshold that reaches each of 200 coverages, in descending order of thresholds.
    pub points: Vec<CoveragePoint>,
}

/// The coverage and the risk of a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoveragePoint {
    /// The lowest confidence at which the model predicts; it abstains below.
    pub threshold: f64,
    /// The share of images on which it does not abstain.
    pub coverage: f64,
    /// The share of wrong predictions among these.
    pub risk: f64,
}

impl CoverageCurve {
    pub fn of(predictions: &TopLabel) -> Self {
        let curve = coverage_curve(predictions);
        let mut points: Vec<CoveragePoint> = Vec::new();
        let mut wanted = 1;
        for point in curve {
            if point.coverage * MAX_POINTS as f64 + 1e-9 >= f64::from(wanted) {
                wanted = (point.coverage * MAX_POINTS as f64 + 1e-9) as u32 + 1;
                points.push(CoveragePoint {
                    threshold: point.threshold,
                    coverage: point.coverage,
                    risk: point.risk,
                });
            }
        }
        Self { aurc: aurc(predictions), points }
    }
}

/// Plots the curves of all runs in one panel, after calibration if there is a calibrator.
pub(super) fn view(curves: &[RunData<'_, BeforeAfter<CoverageCurve>>]) -> Option<PlotView> {
    let mut marks = Vec::new();
    let mut legend = Vec::new();
    let mut rows = Vec::new();
    let mut max_risk = 0.0_f64;
    for &RunData { tone, name, data } in curves {
        let curve = data.last();
        let points: Vec<_> = curve.points.iter().map(|point| (point.coverage, point.risk)).collect();
        max_risk = points.iter().map(|point| point.1).fold(max_risk, f64::max);
        marks.push(PlotMark::Line { points, tone });
        legend.push(Key { text: format!("{}, area {:.4}", legend_name(name), curve.aurc), tone });
        for (when, curve) in data.named() {
            rows.extend(curve.points.iter().map(|point| {
                vec![
                    TableCell::Text(name.to_owned()),
                    TableCell::Text(when.to_owned()),
                    TableCell::Share(point.coverage),
                    TableCell::Share(point.risk),
                    TableCell::Number(point.threshold),
                ]
            }));
        }
    }
    if marks.is_empty() {
        return None;
    }
    let plot = Plot {
        x: Axis::share("coverage (samples predicted), %"),
        y: Axis::share_up_to("risk (wrong predictions), %", max_risk),
        marks,
    };
    Some(PlotView {
        name: "coverage".to_owned(),
        title: "What if it abstains when its confidence is low?".to_owned(),
        sentence: "Samples are added in order of confidence, the most confident first. At a coverage of 50% the model \
                   predicts the more confident half of all samples, and the line shows how many of these predictions are \
                   wrong. The lower the line, the better confidence separates right from wrong predictions."
            .to_owned(),
        panels: vec![Plot::panel("Risk and coverage", PANEL_WIDTH, &[(plot, 230.0)], &legend)],
        images: Vec::new(),
        table: DataTable { columns: vec!["run", "calibration", "coverage", "risk", "threshold"], rows },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curve_is_thinned_and_keeps_its_last_point() {
        let predictions =
            TopLabel::new((0..1_000).map(|i| f64::from(i) / 1_000.0).collect(), vec![true; 1_000]).unwrap();
        let curve = CoverageCurve::of(&predictions);
        assert_eq!((curve.points.len(), curve.points[199].coverage), (200, 1.0));
        assert!((curve.points[0].coverage - 0.005).abs() < 1e-12);
        let tied = CoverageCurve::of(&TopLabel::new(vec![0.5; 9], vec![false; 9]).unwrap());
        assert_eq!(tied.points, [CoveragePoint { threshold: 0.5, coverage: 1.0, risk: 1.0 }]);
    }
}
