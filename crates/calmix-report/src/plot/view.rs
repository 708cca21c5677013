//! A plot on the page: a title, a sentence, drawings, images and a table, which is rounded on the page and has every digit
//! in the CSV file.

use calmix_io::shown::shown;
use calmix_io::text::grouped;
use calmix_run::csv_line::{CsvCell, csv_line};
use serde::Serialize;

use crate::svg::{Axis, Drawing, Key, Plot, PlotMark, shortened};

/// The width of a panel in pixels: two fit side by side on a page, and one on a phone.
pub(super) const PANEL_WIDTH: f64 = 400.0;

#[derive(Debug, Clone, PartialEq)]
pub struct PlotView {
    /// Its name in files and links.
    pub name: String,
    pub title: String,
    /// A sentence or two on what the plot shows and how to read it.
    pub sentence: String,
    pub panels: Vec<Drawing>,
    pub images: Vec<ImageRow>,
    pub table: DataTable,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ImageRow {
    pub title: &'static str,
    pub examples: Vec<ExamplePrediction>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExamplePrediction {
    pub id: u64,
    /// The name of its file; `None` if the run has no thumbnail of it.
    pub name: Option<String>,
    pub label: String,
    pub predicted: String,
    pub confidence: f64,
    /// The calibrated confidence; `None` without a calibrator.
    pub calibrated: Option<f64>,
    /// The thumbnails, small and large; `None` if the run has none or they were not requested.
    #[serde(skip)]
    pub images: Option<[Vec<u8>; 2]>,
}

impl ExamplePrediction {
    /// Returns the calibrated confidence, or else the network's own.
    pub(super) fn shown_confidence(&self) -> f64 {
        self.calibrated.unwrap_or(self.confidence)
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataTable {
    /// The names of the columns, with units.
    pub columns: Vec<&'static str>,
    /// The rows, with a cell per column.
    pub rows: Vec<Vec<TableCell>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TableCell {
    /// A text, which may come from an untrusted file.
    Text(String),
    Count(u64),
    /// A share, shown in per cent.
    Share(f64),
    Number(f64),
    Nothing,
}

impl TableCell {
    /// Makes a cell of a share, if any.
    pub fn share(share: Option<f64>) -> Self {
        share.map_or(Self::Nothing, Self::Share)
    }

    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => shown(text),
            Self::Count(count) => grouped(*count),
            Self::Share(share) => format!("{:.1}%", 100.0 * share),
            Self::Number(number) => format!("{number:.3}"),
            Self::Nothing => "–".to_owned(),
        }
    }

    /// Formats the cell for CSV: every digit, shares from 0 to 1, empty if not measured.
    fn plain(&self) -> CsvCell<'_> {
        match self {
            Self::Text(text) => CsvCell::text(text),
            Self::Count(count) => CsvCell::plain(Some(count)),
            Self::Share(number) | Self::Number(number) => CsvCell::plain(Some(number)),
            Self::Nothing => CsvCell::Plain(String::new()),
        }
    }
}

impl DataTable {
    /// Formats the table as CSV with every digit.
    pub fn csv(&self) -> String {
        let head = csv_line(self.columns.iter().map(|&column| CsvCell::text(column)));
        let rows = self.rows.iter().map(|row| csv_line(row.iter().map(TableCell::plain)));
        std::iter::once(head).chain(rows).collect()
    }
}

#[derive(Debug)]
pub(super) struct RunData<'a, T: ?Sized> {
    /// The index of the run, which determines its colour.
    pub(super) tone: usize,
    pub(super) name: &'a str,
    pub(super) data: &'a T,
}

// Not derived, because that would require `T: Clone`.
impl<T: ?Sized> Clone for RunData<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for RunData<'_, T> {}

/// Shortens the name of a run for a legend.
pub(super) fn legend_name(name: &str) -> String {
    shortened(name, 32)
}

/// A curve with its colour and its entry in the legend.
pub(super) struct Curve {
    pub(super) tone: usize,
    pub(super) text: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// Draws shares over the training steps up to `last`; with `dots`, each point has a dot.
pub(super) fn step_panel(title: &str, label: &str, last: u64, curves: Vec<Curve>, dots: bool) -> Drawing {
    curve_panel(title, label, Axis::counts("training step", 0, last), curves, None, dots)
}

/// Draws shares over an axis, with a thin line at the `expected` one; with `dots`, each point has a dot.
pub(super) fn curve_panel(
    title: &str,
    label: &str,
    x: Axis,
    curves: Vec<Curve>,
    expected: Option<f64>,
    dots: bool,
) -> Drawing {
    let mut marks = Vec::new();
    let mut legend = Vec::new();
    let mut max = expected.unwrap_or(0.0);
    marks.extend(expected.map(|share| PlotMark::Ideal((x.range.0, share), (x.range.1, share))));
    for Curve { tone, text, points } in curves {
        max = points.iter().map(|point| point.1).fold(max, f64::max);
        legend.push(Key { text, tone });
        marks.push(PlotMark::Line { points: points.clone(), tone });
        if dots {
            marks.push(PlotMark::Dots { points, tone });
        }
    }
    let plot = Plot { x, y: Axis::share_up_to(label, max), marks };
    Plot::panel(title, PANEL_WIDTH, &[(plot, 210.0)], &legend)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_every_digit_and_the_page_rounds() {
        let row = vec![
            TableCell::Text("=cmd(\"a\",b)".to_owned()),
            TableCell::Share(1.0 / 3.0),
            TableCell::Count(12_345),
            TableCell::Nothing,
        ];
        let shown: Vec<String> = row.iter().map(TableCell::shown).collect();
        assert_eq!(shown, ["=cmd(\"a\",b)", "33.3%", "12,345", "–"]);
        let table = DataTable { columns: vec!["class", "error, %", "samples", "gap"], rows: vec![row] };
        assert_eq!(
            table.csv(),
            "class,\"error, %\",samples,gap\n\"'=cmd(\"\"a\"\",b)\",0.3333333333333333,12345,\n"
        );
    }
}
