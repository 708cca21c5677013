//! Utilisation and impurity: the share of pseudo-labels that were used, and the share of wrong ones among these.

use calmix_run::events::{Event, Step};
use serde::Serialize;

use super::view::{Curve, DataTable, PlotView, RunData, TableCell, legend_name, step_panel};

/// The maximum number of points on a curve; with more steps, consecutive ones are averaged.
const MAX_POINTS: usize = 200;

/// A point of the curve: consecutive steps, averaged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PseudoLabelPoint {
    pub step: u64,
    /// The number of logged steps that were averaged.
    pub events: usize,
    /// The mean weight of the unlabelled samples.
    pub utilisation: Option<f64>,
    /// The mean share of wrong pseudo-labels among those used; `None` if the dataset has no true classes.
    pub impurity: Option<f64>,
}

/// Computes the curve of a run over its steps; empty without unlabelled samples.
pub fn curve(events: &[Event]) -> Vec<PseudoLabelPoint> {
    let steps: Vec<&Step> = events
        .iter()
        .filter_map(|event| match event {
            Event::Step(step) if step.utilisation.is_some() => Some(step.as_ref()),
            _ => None,
        })
        .collect();
    let point = |steps: &[&Step]| {
        let mean = |pick: fn(&Step) -> Option<f64>| {
            let values: Vec<f64> = steps.iter().filter_map(|step| pick(step)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        PseudoLabelPoint {
            step: steps.last().map_or(0, |step| step.step),
            events: steps.len(),
            utilisation: mean(|step| step.utilisation),
            impurity: mean(|step| step.impurity),
        }
    };
    steps.chunks(steps.len().div_ceil(MAX_POINTS).max(1)).map(point).collect()
}

/// Plots utilisation and impurity, each in a panel with all runs.
pub(super) fn view(curves: &[RunData<'_, [PseudoLabelPoint]>]) -> Option<PlotView> {
    // A single point shows no progress.
    let curves: Vec<_> = curves.iter().filter(|curve| curve.data.len() > 1).collect();
    let last = curves.iter().flat_map(|curve| curve.data.iter().map(|point| point.step)).max()?;
    let panel = |title: &str, label: &str, pick: fn(&PseudoLabelPoint) -> Option<f64>| {
        let curve = |&&RunData { tone, name, data }: &&RunData<'_, [PseudoLabelPoint]>| {
            let points = data.iter().filter_map(|point| Some((point.step as f64, pick(point)?)));
            Curve { tone, text: legend_name(name), points: points.collect() }
        };
        let mut curves: Vec<_> = curves.iter().map(curve).collect();
        curves.retain(|curve| curve.points.len() > 1);
        (!curves.is_empty()).then(|| step_panel(title, label, last, curves, false))
    };
    let panels = [
        panel("Utilisation", "weight of unlabelled samples, %", |point| point.utilisation),
        panel("Impurity", "used pseudo-labels that are wrong, %", |point| point.impurity),
    ];
    let rows = curves.iter().flat_map(|curve| {
        curve.data.iter().map(|point| {
            vec![
                TableCell::Text(curve.name.to_owned()),
                TableCell::Count(point.step),
                TableCell::Count(point.events as u64),
                TableCell::share(point.utilisation),
                TableCell::share(point.impurity),
            ]
        })
    });
    Some(PlotView {
        name: "pseudo-labels".to_owned(),
        title: "How good were the pseudo-labels?".to_owned(),
        sentence: "Utilisation is the mean weight of the unlabelled samples in a step. Impurity is the share of wrong \
                   pseudo-labels among those that were trained on; it is shown only if the dataset has the true classes."
            .to_owned(),
        panels: panels.into_iter().flatten().collect(),
        images: Vec::new(),
        table: DataTable {
            columns: vec!["run", "up to step", "logged steps", "utilisation", "impurity"],
            rows: rows.collect(),
        },
    })
}

#[cfg(test)]
mod tests {
    use calmix_run::events::Loss;

    use super::*;

    #[test]
    fn many_steps_are_averaged() {
        let step = |n: u64| {
            let impurity = n.is_multiple_of(2).then_some(0.5);
            let step = Step { utilisation: Some(n as f64), impurity, ..Step::new(n, Loss::default()) };
            Event::Step(Box::new(step))
        };
        let events: Vec<Event> = (1..=401).map(step).collect();
        let curve = curve(&events);
        // ⌈401 / 200⌉ = 3 steps per point.
        assert_eq!((curve.len(), curve[0].step, curve[0].utilisation), (134, 3, Some(2.0)));
        assert_eq!((curve[0].impurity, curve[133].events), (Some(0.5), 2));
        assert!(super::curve(&[Event::Step(Box::new(Step::new(1, Loss::default())))]).is_empty());
    }
}
