//! Formats the comparison as CSV: a line per setting and measure, in the units of the tables.

use calmix_run::csv_line::{CsvCell, csv_line};
use calmix_run::result::HeadName;

use super::{Comparison, Measure, SettingCell};

const HEADER: &str = "dataset,labels,on,method,head,metric,mean,std,n,against,pairs,difference,low,high,p,p_holm,outcome,\
                      paper_mean,paper_std,minus_paper\n";

impl Comparison {
    /// Formats the comparison as CSV: a line per setting and measure, in per cent.
    pub fn to_csv(&self) -> String {
        let mut cells: Vec<&SettingCell> = self.cells.iter().collect();
        cells.sort_by_key(|cell| (cell.column, cell.row));
        let settings =
            Measure::ALL.into_iter().flat_map(|measure| cells.iter().map(move |cell| (measure, *cell)));
        let lines = settings.filter_map(|(measure, cell)| line(self, measure, cell).map(csv_line));
        std::iter::once(HEADER.to_owned()).chain(lines).collect()
    }
}

fn line<'a>(comparison: &'a Comparison, measure: Measure, cell: &SettingCell) -> Option<[CsvCell<'a>; 20]> {
    let measured = cell.measured(measure)?;
    let column = &comparison.columns[cell.column];
    let place = (cell.column, cell.row, measure);
    let difference =
        comparison.differences.iter().find(|other| (other.column, other.row, other.measure) == place);
    let interval = difference.and_then(|difference| difference.interval);
    let paper = cell.paper.and_then(|paper| match measure {
        Measure::Ece => Some((paper.ece, paper.ece_std)),
        Measure::Error => Some((paper.error, paper.error_std)),
        _ => None,
    });
    let scaled = |number: Option<f64>| CsvCell::plain(number.map(|number| measure.scale() * number));
    let against = difference.map_or("", |difference| comparison.rows[difference.against].as_str());
    Some([
        CsvCell::text(&column.dataset),
        CsvCell::text(&column.labels),
        CsvCell::text(&column.on),
        CsvCell::text(&comparison.rows[cell.row]),
        CsvCell::text(cell.head.map_or("", HeadName::name)),
        CsvCell::text(measure.name()),
        scaled(Some(measured.mean)),
        scaled(measured.deviation),
        CsvCell::plain(Some(measured.n)),
        CsvCell::text(against),
        CsvCell::plain(difference.map(|difference| difference.pairs)),
        scaled(difference.and_then(|difference| difference.mean)),
        scaled(interval.map(|interval| interval.low)),
        scaled(interval.map(|interval| interval.high)),
        CsvCell::plain(difference.and_then(|difference| difference.p_value)),
        CsvCell::plain(difference.and_then(|difference| difference.p_holm)),
        CsvCell::plain(difference.map(|difference| difference.outcome.words())),
        CsvCell::plain(paper.map(|paper| paper.0)),
        CsvCell::plain(paper.and_then(|paper| paper.1)),
        CsvCell::plain(cell.minus_paper(measure)),
    ])
}
