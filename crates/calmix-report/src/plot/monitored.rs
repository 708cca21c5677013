//! The outputs of a model over time: alarm, estimated error, strange samples, mix of classes.

use super::view::{Curve, DataTable, PANEL_WIDTH, PlotView, TableCell, curve_panel, legend_name};
use crate::monitoring::outcome::{MonitoredBatch, Monitoring};
use crate::svg::{Axis, Drawing, Plot, PlotMark, TONES};

/// The largest number of classes with a line of their own.
const MAX_CLASSES: usize = TONES;

/// The largest number of rows of a table: the last ones. `--json` has all.
const MAX_ROWS: usize = 60;

/// The share of the reference that is as strange as a strange row.
const EXPECTED_STRANGE: f64 = 0.05;

/// Draws every plot with data.
pub(crate) fn views(of: &Monitoring) -> Vec<PlotView> {
    let views = [alarm(of), error(of), mix(of)];
    views.into_iter().flatten().collect()
}

fn batches_axis(of: &Monitoring) -> Axis {
    Axis::counts("batch", 0, of.batches.len().max(2) as u64)
}

/// The numbers of the batches that have one, by batch.
fn points(of: &Monitoring, pick: impl Fn(&MonitoredBatch) -> Option<f64>) -> Vec<(f64, f64)> {
    let batches = of.batches.iter().enumerate();
    batches.filter_map(|(at, batch)| Some(((at + 1) as f64, pick(batch)?))).collect()
}

/// Returns the last rows.
fn recent(rows: Vec<Vec<TableCell>>) -> Vec<Vec<TableCell>> {
    let surplus = rows.len().saturating_sub(MAX_ROWS);
    rows.into_iter().skip(surplus).collect()
}

fn alarm(of: &Monitoring) -> Option<PlotView> {
    let capital = points(of, |batch| batch.log10_capital);
    let last = capital.last()?.0;
    let strange = points(of, |batch| batch.strange);
    let rows = of.batches.iter().enumerate().map(|(at, batch)| {
        vec![
            TableCell::Count(at as u64 + 1),
            TableCell::Text(batch.output.clone()),
            TableCell::Count(batch.rows),
            batch.log10_capital.map_or(TableCell::Nothing, TableCell::Number),
            TableCell::share(batch.strange),
            TableCell::Text(batch.verdict.clone().unwrap_or_default()),
        ]
    });
    let x = batches_axis(of);
    let curve = Curve { tone: 1, text: "stranger than 95% of the reference".to_owned(), points: strange };
    let share = curve_panel("Strange samples", "rows, %", x, vec![curve], Some(EXPECTED_STRANGE), true);
    Some(PlotView {
        name: "alarm".to_owned(),
        title: "Are the samples like those of training?".to_owned(),
        sentence: "Left, the capital of gamblers who bet that they are not, one on single rows and one on the means of batches: it \
                   reaches 100, the dashed line, with a probability of at most 1% as long as they are, however many batches there are. Right, the share of samples that are stranger than 95% of \
                   those of training; 5% are expected."
            .to_owned(),
        panels: vec![capital_panel(of, capital, last), share],
        images: Vec::new(),
        table: DataTable {
            columns: vec!["batch", "output", "rows", "log₁₀ of the capital", "strange rows", "verdict alone"],
            rows: recent(rows.collect()),
        },
    })
}

fn capital_panel(of: &Monitoring, points: Vec<(f64, f64)>, last: f64) -> Drawing {
    let low = points.iter().map(|point| point.1).fold(-1.0, f64::min);
    let high = points.iter().map(|point| point.1).fold(2.5, f64::max);
    let marks = vec![
        PlotMark::Ideal((0.0, 2.0), (last.max(2.0), 2.0)),
        PlotMark::Line { points: points.clone(), tone: 0 },
        PlotMark::Dots { points, tone: 0 },
    ];
    let y = Axis::linear("log₁₀ of the capital", low, high);
    let plot = Plot { x: batches_axis(of), y, marks };
    Plot::panel("Evidence of a change", PANEL_WIDTH, &[(plot, 210.0)], &[])
}

fn error(of: &Monitoring) -> Option<PlotView> {
    let estimated = points(of, |batch| batch.estimated_error);
    if estimated.is_empty() {
        return None;
    }
    let rows =
        estimated.iter().map(|&(batch, error)| vec![TableCell::Count(batch as u64), TableCell::Share(error)]);
    let rows: Vec<Vec<TableCell>> = rows.collect();
    let curve = Curve { tone: 0, text: "mean probability of being wrong".to_owned(), points: estimated };
    Some(PlotView {
        name: "error".to_owned(),
        title: "How many predictions are wrong?".to_owned(),
        sentence: of.error_sentence(),
        panels: vec![curve_panel("Estimated error", "error, %", batches_axis(of), vec![curve], None, true)],
        images: Vec::new(),
        table: DataTable { columns: vec!["batch", "estimated error"], rows: recent(rows) },
    })
}

fn mix(of: &Monitoring) -> Option<PlotView> {
    let mut classes: Vec<usize> = (0..of.classes.len()).collect();
    let share = |class: usize, batch: &MonitoredBatch| batch.mix.get(class).copied();
    let range = |class: usize| {
        let shares: Vec<f64> = of.batches.iter().filter_map(|batch| share(class, batch)).collect();
        let highest = shares.iter().copied().fold(0.0, f64::max);
        highest - shares.iter().copied().fold(1.0, f64::min)
    };
    if of.batches.iter().all(|batch| batch.mix.is_empty()) {
        return None;
    }
    // The classes that changed most.
    classes.sort_by(|&a, &b| range(b).total_cmp(&range(a)));
    classes.truncate(MAX_CLASSES);
    let curve = |(tone, &class): (usize, &usize)| Curve {
        tone,
        text: legend_name(&of.classes[class]),
        points: points(of, |batch| share(class, batch)),
    };
    let curves: Vec<Curve> = classes.iter().enumerate().map(curve).collect();
    let rows = of.batches.iter().enumerate().flat_map(|(at, batch)| {
        batch.mix.iter().zip(&of.classes).map(move |(&share, class)| {
            vec![TableCell::Count(at as u64 + 1), TableCell::Text(class.clone()), TableCell::Share(share)]
        })
    });
    let which = if of.classes.len() > MAX_CLASSES { "The classes whose share changed most. " } else { "" };
    Some(PlotView {
        name: "mix".to_owned(),
        title: "Which classes are there?".to_owned(),
        sentence: format!(
            "{which}Mean probabilities, which lie between the mix of training and the true one; `calmix predict --mix estimate` estimates \
             the latter."
        ),
        panels: vec![curve_panel("Mix of classes", "share, %", batches_axis(of), curves, None, false)],
        images: Vec::new(),
        table: DataTable {
            columns: vec!["batch", "class", "mean probability"],
            rows: recent(rows.collect()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitoring::ChangeKind;

    fn monitoring(batches: usize) -> Monitoring {
        let batch = |at: usize| MonitoredBatch {
            output: format!("day-{at}.csv"),
            rows: 100,
            estimated_error: Some(0.1 + 0.01 * at as f64),
            mix: vec![0.5, 0.3, 0.2],
            verdict: Some("applies".to_owned()),
            strange: Some(0.05),
            log10_capital: Some(at as f64 - 1.0),
            log10_highest: Some(at as f64),
        };
        Monitoring {
            run: "runs/<a>".to_owned(),
            classes: ["cat", "dog", "</script>"].map(str::to_owned).to_vec(),
            batches: (0..batches).map(batch).collect(),
            alarm: (batches > 3).then_some(4),
            changed: (batches > 3).then_some(ChangeKind::Mean),
            not_compared: None,
            labelled: None,
        }
    }

    #[test]
    fn every_plot_has_its_numbers() {
        let views = views(&monitoring(5));
        let names: Vec<&str> = views.iter().map(|view| view.name.as_str()).collect();
        assert_eq!(names, ["alarm", "error", "mix"]);
        assert_eq!(views.iter().map(|view| view.table.rows.len()).collect::<Vec<_>>(), [5, 5, 15]);
        let [alone, none] = [1, 0].map(|batches| super::views(&monitoring(batches)).len());
        assert_eq!((alone, none), (3, 0));
    }

    #[test]
    fn page_is_inert_and_says_what_was_found() {
        let page = monitoring(5).page();
        for part in [
            "Alarm after batch 4 of 5",
            "Their mean has moved",
            "12.0% of the predictions are estimated to be wrong",
            "day-3.csv",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
        let quiet = Monitoring { not_compared: Some("no reference".to_owned()), ..monitoring(0) };
        assert!(quiet.page().contains("not compared with a reference: no reference"));
    }
}
