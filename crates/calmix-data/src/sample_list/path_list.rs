//! Reads the paths of a list, row by row.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::labels::columns::check_separator;
use calmix_formats::read_at::ReadAt;
use calmix_formats::vectors::{CsvLines, ParquetTextColumn, VectorPlace};
use csv::StringRecord;

use crate::error::DataError;

/// The column of paths, as `calmix predict` names it.
const COLUMN: &str = "path";

/// An open list. Rows of Parquet are counted from 0 over all files; rows of a CSV are its lines, counted from 1.
#[derive(Debug)]
pub(super) struct PathList {
    path: PathBuf,
    format: ListFormat,
}

#[derive(Debug)]
enum ListFormat {
    Parquet(ParquetTextColumn),
    Csv(Arc<ReadAt>),
}

impl PathList {
    /// Opens a Parquet file, a folder of them, or a CSV file.
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        let place = VectorPlace::find(path)?;
        let format = match &place.file {
            Some(name) if place.has_extension(&["csv"]) => ListFormat::Csv(Arc::new(place.open(name)?)),
            Some(_) if !place.has_extension(&["parquet"]) => {
                let problem = "a list of samples is a .parquet or a .csv";
                return Err(DataError::content(path, problem).hint("COPY (SELECT path …) TO 'list.parquet'"));
            }
            _ => {
                let texts = ParquetTextColumn::open(&place, COLUMN).map_err(with_hint)?;
                if texts.files().next().is_none() {
                    let hint = "name a list: a .parquet, a .csv, or a folder of .parquet files";
                    return Err(DataError::content(path, "there is no .parquet file in it").hint(hint));
                }
                ListFormat::Parquet(texts)
            }
        };
        Ok(Self { path: path.to_owned(), format })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `visit` with every row and its path.
    pub(super) fn visit(
        &self,
        mut visit: impl FnMut(u64, &str) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        match &self.format {
            ListFormat::Parquet(texts) => texts.visit(|row, text| match text.as_deref() {
                None | Some("") => Err(self.error(row, FormatProblem::Content("the row has no path".into()))),
                Some(text) => visit(row, text),
            }),
            ListFormat::Csv(file) => self.visit_lines(file, visit),
        }
    }

    fn visit_lines(
        &self,
        file: &Arc<ReadAt>,
        mut visit: impl FnMut(u64, &str) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut lines = CsvLines::new(&self.path, file);
        let mut record = StringRecord::new();
        if !lines.read(&mut record)? {
            return Ok(());
        }
        let at = |problem| FormatError::new(&self.path, problem).at("line 1");
        check_separator(&record, &at)?;
        let Some(column) = record.iter().position(|name| name.trim() == COLUMN) else {
            let columns = record.iter().collect::<Vec<_>>().join(", ");
            let problem = format!("no column `{COLUMN}`; the columns are: {columns}");
            return Err(with_hint(at(FormatProblem::Content(problem))).into());
        };
        while lines.read(&mut record)? {
            let line = record.position().map_or(0, csv::Position::line);
            let cell = record.get(column).unwrap_or_default();
            if cell.is_empty() {
                return Err(self.error(line, FormatProblem::Content("the row has no path".into())));
            }
            visit(line, &of_cell(cell))?;
        }
        Ok(())
    }

    /// Reads the path of a row.
    pub(super) fn text(&self, wanted: u64) -> Result<String, DataError> {
        let mut found = String::new();
        self.visit(|row, text| {
            if row == wanted {
                text.clone_into(&mut found);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the error for a row, with its file and position.
    pub(super) fn error(&self, row: u64, problem: FormatProblem) -> DataError {
        match &self.format {
            ListFormat::Csv(_) => DataError::new(&self.path, problem).at(format!("line {row}")),
            ListFormat::Parquet(texts) => {
                let mut row = row;
                let mut place = self.path.as_path();
                for (file, rows) in texts.files() {
                    place = file;
                    if row < rows {
                        break;
                    }
                    row -= rows;
                }
                DataError::new(place, problem).at(format!("row {row}"))
            }
        }
    }
}

/// Unescapes a path from a CSV cell: `calmix predict` puts an apostrophe before a cell that looks like a formula, and writes
/// a path's own apostrophe in that position as `\x27`.
fn of_cell(cell: &str) -> String {
    match cell.strip_prefix('\'') {
        Some(path) => path.to_owned(),
        None => cell.strip_prefix(r"\x27").map_or_else(|| cell.to_owned(), |rest| format!("'{rest}")),
    }
}

fn with_hint(error: FormatError) -> FormatError {
    match &error.hint {
        None => error.hint("SELECT path FROM the output of `calmix predict`"),
        Some(_) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_cells_are_read_as_predict_writes_them() {
        let cells = [
            ("a.png", "a.png"),
            ("'=a.png", "=a.png"),
            (r"\x27=a.png", "'=a.png"),
            (r"a\x27.png", r"a\x27.png"),
        ];
        for (cell, path) in cells {
            assert_eq!(of_cell(cell), path);
        }
    }
}
