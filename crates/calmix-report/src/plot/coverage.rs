//! Risk and coverage: how often answers are wrong if the model abstains where it is less sure.

use calmix_metrics::measure::{TopLabel, aurc, coverage_curve};
use serde::Serialize;

use super::{DataTable, PlotView, TableCell};
use crate::report::RunReport;
use crate::svg::{Axis, Key, Plot, PlotMark};

/// Points of a curve at most, at equal distances of coverage.
const MOST: usize = 200;

/// The risk at a choice of coverages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoverageCurve {
    /// The area under the whole curve.
    pub aurc: f64,
    /// For each of 200 coverages the first threshold that answers as many, from the highest down.
    pub points: Vec<AnsweredShare>,
}

/// What a threshold comes to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AnsweredShare {
    /// The model answers at this confidence and above.
    pub threshold: f64,
    /// The share of images that it answers.
    pub coverage: f64,
    /// The share of its answers that is wrong.
    pub risk: f64,
}

impl CoverageCurve {
    /// Of these predictions.
    pub fn of(said: &TopLabel) -> Self {
        let curve = coverage_curve(said);
        let mut points: Vec<AnsweredShare> = Vec::new();
        let mut wanted = 1;
        for point in curve {
            if point.coverage * MOST as f64 + 1e-9 >= f64::from(wanted) {
                wanted = (point.coverage * MOST as f64 + 1e-9) as u32 + 1;
                points.push(AnsweredShare {
                    threshold: point.threshold,
                    coverage: point.coverage,
                    risk: point.risk,
                });
            }
        }
        Self { aurc: aurc(said), points }
    }
}

/// All runs over each other, with the map if any.
pub(super) fn view(runs: &[RunReport]) -> Option<PlotView> {
    let (mut marks, mut legend, mut rows, mut most) = (Vec::new(), Vec::new(), Vec::new(), 0.0_f64);
    for (tone, run) in runs.iter().enumerate() {
        let Some(evaluated) = &run.evaluated else { continue };
        let curve = evaluated.coverage.last();
        let points: Vec<_> = curve.points.iter().map(|point| (point.coverage, point.risk)).collect();
        most = points.iter().map(|point| point.1).fold(most, f64::max);
        marks.push(PlotMark::Line { points, tone, dashed: false });
        legend.push(Key {
            text: format!("{}, area {:.4}", super::brief(&run.name), curve.aurc),
            tone,
            dashed: false,
        });
        for (when, curve) in evaluated.coverage.named() {
            rows.extend(curve.points.iter().map(|point| {
                vec![
                    TableCell::Text(run.name.clone()),
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
        x: Axis::share("images answered, %"),
        y: Axis::share_up_to("answers that are wrong, %", most),
        marks,
    };
    Some(PlotView {
        name: "coverage".to_owned(),
        title: "What if it answers only where it is sure?".to_owned(),
        sentence: "The model answers its most confident images first. At 50 % it answers the surer half of all images; the \
                   line says how many of these answers are wrong. The lower, the better its confidence tells right from \
                   wrong."
            .to_owned(),
        panels: vec![Plot::panel("Risk and coverage", super::PANEL, &[(plot, 230.0)], &legend)],
        images: Vec::new(),
        table: DataTable { columns: vec!["run", "map", "answered", "wrong", "confidence from"], rows },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_confidences_some_are_kept_and_the_last_always() {
        let said =
            TopLabel::new((0..1_000).map(|i| f64::from(i) / 1_000.0).collect(), vec![true; 1_000]).unwrap();
        let curve = CoverageCurve::of(&said);
        assert_eq!((curve.points.len(), curve.points[199].coverage), (200, 1.0));
        assert!((curve.points[0].coverage - 0.005).abs() < 1e-12);
        let tied = CoverageCurve::of(&TopLabel::new(vec![0.5; 9], vec![false; 9]).unwrap());
        assert_eq!(tied.points, [AnsweredShare { threshold: 0.5, coverage: 1.0, risk: 1.0 }]);
    }
}
