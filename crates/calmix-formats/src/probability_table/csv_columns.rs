//! CSV with a column per class.

use std::sync::Arc;

use csv::StringRecord;

use super::options::{ProbabilityOptions, class_columns};
use super::table::ProbabilityTable;
use crate::error::{FormatError, FormatProblem};
use crate::labels::columns::{check_separator, group_column, id_column};
use crate::vectors::{CsvLines, VectorPlace};

/// Reads the rows of a file.
pub(super) fn read(
    place: &VectorPlace,
    options: &ProbabilityOptions,
    table: &mut ProbabilityTable,
) -> Result<(), FormatError> {
    let file = Arc::new(place.open(place.file.as_deref().unwrap_or_default())?);
    let path = file.path().to_owned();
    let mut lines = CsvLines::new(&path, &file);
    let mut record = StringRecord::new();
    let at = |problem: FormatProblem| FormatError::new(&path, problem).at("line 1");
    if !lines.read(&mut record)? {
        return Err(FormatError::content(&path, "the file is empty"));
    }
    check_separator(&record, &at)?;
    let id = id_column(&record, &options.label_columns()).map_err(at)?;
    let group = group_column(&record).map_err(at)?;
    let others: Vec<usize> =
        (0..record.len()).filter(|&column| ![id, group].contains(&Some(column))).collect();
    let names: Vec<&str> = others.iter().map(|&column| record[column].trim()).collect();
    let columns = class_columns(&names, &options.classes).map_err(at)?;
    let (places, classes): (Vec<usize>, Vec<String>) =
        columns.into_iter().map(|(column, class)| (others[column], class)).unzip();
    let headers: Vec<String> = places.iter().map(|&column| record[column].to_owned()).collect();
    table.set_classes(classes).map_err(at)?;
    let mut row = Vec::with_capacity(places.len());
    while lines.read(&mut record)? {
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |problem: FormatProblem| FormatError::new(&path, problem).at(format!("line {line}"));
        row.clear();
        for (&column, header) in places.iter().zip(&headers) {
            let text = record.get(column).unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let number = text.parse().map_err(|_| {
                let problem = format!("column `{header}` holds {text:?}, which is not a number");
                wrong(FormatProblem::Content(problem))
                    .hint("name the columns of the classes with `--classes A,B,…`")
            })?;
            row.push(number);
        }
        let id = id.map(|column| record.get(column).unwrap_or_default().to_owned());
        table.add(id, &row).map_err(wrong)?;
    }
    Ok(())
}
