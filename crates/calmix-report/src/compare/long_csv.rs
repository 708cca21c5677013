//! As CSV: a line for each setting and measure, as the paper's figures are kept, in per cent.

use super::{Comparison, Measure, SettingCell};

const HEAD: [&str; 19] = [
    "dataset",
    "labels",
    "on",
    "method",
    "metric",
    "mean",
    "std",
    "n",
    "against",
    "pairs",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "verdict",
    "paper_mean",
    "paper_std",
    "minus_paper",
];

pub(super) fn write(comparison: &Comparison) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut cells: Vec<&SettingCell> = comparison.cells.iter().collect();
    cells.sort_by_key(|cell| (cell.column, cell.row));
    let lines = Measure::ALL.into_iter().flat_map(|measure| cells.iter().map(move |cell| (measure, *cell)));
    // Writing into memory does not fail.
    let _ = writer.write_record(HEAD);
    for (measure, cell) in lines {
        let _ = line(comparison, measure, cell).map(|line| writer.write_record(line));
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn line(comparison: &Comparison, measure: Measure, cell: &SettingCell) -> Option<[String; 19]> {
    let seen = cell.measured(measure)?;
    let column = &comparison.columns[cell.column];
    let place = (cell.column, cell.row, measure);
    let difference =
        comparison.differences.iter().find(|other| (other.column, other.row, other.measure) == place);
    let per_cent = |share: Option<f64>| share.map(|share| (100.0 * share).to_string()).unwrap_or_default();
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let interval = difference.and_then(|difference| difference.interval);
    let paper = cell.paper.map(|paper| match measure {
        Measure::Ece => (paper.ece, paper.ece_std),
        Measure::Error => (paper.error, paper.error_std),
    });
    let of = |pick: &dyn Fn(&super::SettingDifference) -> String| difference.map(pick).unwrap_or_default();
    Some([
        column.dataset.clone(),
        column.labels.clone(),
        column.on.clone(),
        comparison.rows[cell.row].clone(),
        measure.name().to_owned(),
        per_cent(Some(seen.mean)),
        per_cent(seen.deviation),
        seen.n.to_string(),
        of(&|difference| comparison.rows[difference.against].clone()),
        of(&|difference| difference.pairs.to_string()),
        per_cent(difference.and_then(|difference| difference.mean)),
        per_cent(interval.map(|interval| interval.low)),
        per_cent(interval.map(|interval| interval.high)),
        number(difference.and_then(|difference| difference.p_value)),
        number(difference.and_then(|difference| difference.p_holm)),
        of(&|difference| difference.verdict.words().to_owned()),
        number(paper.map(|paper| paper.0)),
        number(paper.and_then(|paper| paper.1)),
        number(cell.beside_paper(measure)),
    ])
}
