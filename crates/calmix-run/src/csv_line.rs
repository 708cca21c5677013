//! Formats a line of CSV for all commands: quoted by the crate `csv`, and safe to open in a spreadsheet.
//!
//! Spreadsheets evaluate a cell that starts like a formula, and a formula can send neighbouring cells to a server. Names of
//! files and classes are untrusted, so such a text gets an apostrophe in front (CWE-1236).
//!
//! It is in this crate because both the binary and `calmix-report` use it, and `calmix-core` knows no file formats.

use std::borrow::Cow;
use std::fmt::Display;

/// A cell of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsvCell<'a> {
    /// An untrusted text, such as a path or the name of a class.
    Text(Cow<'a, str>),
    /// A text that calmix makes itself, such as a number; written unchanged.
    Plain(String),
}

impl<'a> CsvCell<'a> {
    /// Makes a cell from an untrusted text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Makes a cell from a value that calmix makes itself; `None` is an empty cell.
    pub fn plain(value: Option<impl Display>) -> Self {
        Self::Plain(value.map(|value| value.to_string()).unwrap_or_default())
    }
}

/// Formats a line, including its line end.
///
/// ```
/// use calmix_run::csv_line::{CsvCell, csv_line};
///
/// let cells = [CsvCell::text("=cmd|calc.png"), CsvCell::text("cat, big"), CsvCell::plain(Some(-0.5))];
/// assert_eq!(csv_line(cells), "'=cmd|calc.png,\"cat, big\",-0.5\n");
/// ```
pub fn csv_line<'a>(cells: impl IntoIterator<Item = CsvCell<'a>>) -> String {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(1 << 10).from_writer(Vec::new());
    // Writing into memory does not fail.
    for cell in cells {
        let _ = match cell {
            CsvCell::Text(text) => writer.write_field(guarded(&text).as_ref()),
            CsvCell::Plain(text) => writer.write_field(text),
        };
    }
    let _ = writer.write_record(None::<&[u8]>);
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Puts an apostrophe before a text that a spreadsheet would take for a formula. Numbers are exempt, because classes may be
/// named -1 and +1.
fn guarded(text: &str) -> Cow<'_, str> {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_guarded_and_numbers_are_not() {
        let formulas =
            ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "-inf", "-1+cmd|' /C calc'!A0", "-"];
        for formula in formulas {
            assert_eq!(guarded(formula), format!("'{formula}"));
        }
        for harmless in ["", "cat", "a=b", "'=1", "-1", "+1", "-0.5", "-1e-7", " =1"] {
            assert_eq!(guarded(harmless), harmless);
        }
        let cells =
            [CsvCell::plain(Some(f32::NEG_INFINITY)), CsvCell::plain(None::<f32>), CsvCell::text("-inf")];
        assert_eq!(csv_line(cells), "-inf,,'-inf\n");
    }

    /// Python's `csv` and pandas read it back.
    #[test]
    fn quotes_are_those_of_rfc_4180() {
        let texts = ["a", " b ", "c,d", "e\"f", "g\nh", ""];
        let line = csv_line(texts.map(CsvCell::text));
        assert_eq!(line, "a, b ,\"c,d\",\"e\"\"f\",\"g\nh\",\n");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
        let record = reader.records().next().unwrap().unwrap();
        assert_eq!(record.iter().collect::<Vec<_>>(), texts);
    }
}
