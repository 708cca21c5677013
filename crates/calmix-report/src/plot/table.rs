//! The table under a plot: rounded on the page, with every digit in the CSV file.

use calmix_io::counted::grouped;
use calmix_io::shown::shown;
use calmix_run::csv_line::{CsvCell, csv_line};

/// A table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataTable {
    /// The names of the columns, with units.
    pub columns: Vec<&'static str>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Vec<TableCell>>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableCell {
    /// A text, which may come from an untrusted file.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A share, shown in per cent.
    Share(f64),
    /// Any other number.
    Number(f64),
    /// No value was measured.
    Nothing,
}

impl TableCell {
    /// A share, if any.
    pub fn share(share: Option<f64>) -> Self {
        share.map_or(Self::Nothing, Self::Share)
    }

    /// Formats the cell for the page, rounded.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => shown(text),
            Self::Count(count) => grouped(*count),
            Self::Share(share) => format!("{:.1}%", 100.0 * share),
            Self::Number(number) => format!("{number:.3}"),
            Self::Nothing => "–".to_owned(),
        }
    }

    /// Formats the cell for CSV: every digit, shares from 0 to 1, empty if nothing was measured.
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
    /// Writes the table as CSV, every digit of every number in it.
    pub fn csv(&self) -> String {
        let head = csv_line(self.columns.iter().map(|&column| CsvCell::text(column)));
        let rows = self.rows.iter().map(|row| csv_line(row.iter().map(TableCell::plain)));
        std::iter::once(head).chain(rows).collect()
    }
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
