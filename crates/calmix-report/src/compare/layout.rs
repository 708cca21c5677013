//! The layout of the tables before formatting: the paper's, with methods in rows and data in columns, and the table of
//! differences.

use super::{Comparison, Measure};

/// A number in a table, in per cent or points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TableNumber {
    /// Our mean, standard deviation, number of runs, and number of decimals.
    Ours(f64, Option<f64>, usize, usize),
    /// The paper's mean and standard deviation.
    Paper(f64, Option<f64>),
    MinusPaper(f64),
    Nothing,
}

/// The smallest difference of two errors that the tables can show.
const SHOWN_DIFFERENCE: f64 = 5e-5;

/// The rows of a measure with their names.
pub(super) type MeasureRows = Vec<(String, Vec<TableNumber>)>;

/// Lays out the paper's table: for each measure a row per method, and two more if the paper has its metrics.
pub(super) fn paper_layout(comparison: &Comparison, methods: &[String]) -> Vec<(Measure, MeasureRows)> {
    let of = |measure| {
        let mut rows = MeasureRows::new();
        for (row, name) in methods.iter().enumerate() {
            let cells = || (0..comparison.columns.len()).map(move |column| comparison.cell(column, row));
            let ours = cells().map(|cell| match cell.and_then(|cell| cell.measured(measure)) {
                Some(summary) => {
                    let scale = measure.scale();
                    let std = summary.deviation.map(|std| scale * std);
                    TableNumber::Ours(scale * summary.mean, std, summary.n, measure.digits())
                }
                None => TableNumber::Nothing,
            });
            rows.push((name.clone(), ours.collect()));
            // The paper has only these measures.
            let is_in_paper = Measure::TESTED.contains(&measure);
            if !is_in_paper || !cells().flatten().any(|cell| cell.paper.is_some()) {
                continue;
            }
            let papers = cells().map(|cell| match (cell.and_then(|cell| cell.paper), measure) {
                (Some(paper), Measure::Ece) => TableNumber::Paper(paper.ece, paper.ece_std),
                (Some(paper), Measure::Error) => TableNumber::Paper(paper.error, paper.error_std),
                _ => TableNumber::Nothing,
            });
            rows.push(("– paper".to_owned(), papers.collect()));
            let beside = cells().map(|cell| {
                let points = cell.and_then(|cell| cell.minus_paper(measure));
                points.map_or(TableNumber::Nothing, TableNumber::MinusPaper)
            });
            rows.push(("– ours minus paper".to_owned(), beside.collect()));
        }
        (measure, rows)
    };
    let measured = |measure: &Measure| comparison.cells.iter().any(|cell| cell.measured(*measure).is_some());
    let is_uneven = comparison.cells.iter().any(|cell| {
        let balanced = cell.measured(Measure::BalancedError);
        balanced.is_some_and(|balanced| (balanced.mean - cell.error.mean).abs() >= SHOWN_DIFFERENCE)
    });
    let is_shown = |measure: &Measure| measured(measure) && (is_uneven || !measure.is_balanced());
    Measure::ALL.into_iter().filter(is_shown).map(of).collect()
}

/// Finds our row with the best mean in each column; `None` if there is only one row, or a tie.
pub(super) fn best(measure: Measure, rows: &MeasureRows) -> Vec<Option<usize>> {
    let columns = rows.first().map_or(0, |(_, numbers)| numbers.len());
    let best_of = |column: usize| {
        let means = rows.iter().enumerate().filter_map(|(row, (_, numbers))| match numbers.get(column)? {
            TableNumber::Ours(mean, ..) if measure == Measure::MacroF1 => Some((row, -*mean)),
            TableNumber::Ours(mean, ..) => Some((row, *mean)),
            _ => None,
        });
        let (row, lowest) = means.clone().min_by(|a, b| a.1.total_cmp(&b.1))?;
        // A single row and a tie have no best.
        (means.clone().count() > 1 && means.filter(|(_, mean)| *mean == lowest).count() == 1).then_some(row)
    };
    (0..columns).map(best_of).collect()
}

pub(super) fn data_names(comparison: &Comparison) -> Vec<String> {
    comparison.columns.iter().map(|column| format!("{}, {}", column.dataset, column.labels)).collect()
}

/// Returns the rows of the table of differences, with these names of data and methods.
pub(super) fn differences(comparison: &Comparison, data: &[String], methods: &[String]) -> Vec<[String; 9]> {
    let row = |difference: &super::SettingDifference| {
        let points = |share: f64| format!("{:+.2}", 100.0 * share);
        let interval = difference
            .interval
            .map(|interval| format!("{} to {}", points(interval.low), points(interval.high)));
        let p = |value: f64| if value < 0.001 { "< 0.001".to_owned() } else { format!("{value:.3}") };
        let p_values =
            difference.p_value.zip(difference.p_holm).map(|(one, holm)| format!("{} ({})", p(one), p(holm)));
        [
            data[difference.column].clone(),
            methods[difference.row].clone(),
            methods[difference.against].clone(),
            difference.measure.name().to_owned(),
            difference.pairs.to_string(),
            difference.mean.map(points).unwrap_or_default(),
            interval.unwrap_or_default(),
            p_values.unwrap_or_default(),
            difference.outcome.words().to_owned(),
        ]
    };
    comparison.differences.iter().map(row).collect()
}

/// Returns the notes below the tables, which explain how to read them.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = vec![
        "mean ± standard deviation over seeds, with the number of runs n in brackets; errors, F1 and ECE (15 bins) in per cent, the \
         debiased squared calibration error in per cent squared; before calibration unless marked calibrated; bold: the best \
         mean of a column, which may be due to chance"
            .to_owned(),
    ];
    if comparison.cells.iter().any(|cell| cell.head.is_some()) {
        notes.push(
            "runs on frozen features: the metrics are those of the recipe's own head, whichever head a run kept; rows with \
             `labels alone` show the head that was trained on the labels alone"
                .to_owned(),
        );
    }
    let splits: Vec<&str> = comparison.columns.iter().map(|column| column.on.as_str()).collect();
    if splits.iter().any(|split| *split != "test") {
        notes.push(format!("splits that were evaluated, column by column: {}", splits.join(", ")));
    }
    if comparison.cells.iter().any(|cell| cell.ece.is_none()) {
        notes.push("an ECE needs 1,000 samples".to_owned());
    }
    if comparison.cells.iter().any(|cell| cell.chosen_on_test) {
        notes.push("some models were selected on the test split, so their metrics are optimistic".to_owned());
    }
    if comparison.cells.iter().any(|cell| cell.paper.is_some()) {
        let bins = "it does not state the number of bins of its ECE; the difference uses our ECE of 10 bins, as its released \
                    code does";
        notes.push(format!("paper: {}; {bins}", super::PAPER));
    }
    if !comparison.differences.is_empty() {
        notes.push(format!(
            "differences: pairs of runs with the same seeds, Student's t; p-values, in brackets after Holm's correction for \
             {} tests; significant below 0.05; at least {} pairs are needed",
            comparison.tests,
            super::MIN_PAIRS
        ));
    }
    notes.extend(comparison.notes.iter().cloned());
    notes
}
