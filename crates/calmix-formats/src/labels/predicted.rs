//! The predicted class of each row in an output of `calmix predict`, as CSV or Parquet.

use std::sync::Arc;

use csv::StringRecord;

use crate::error::{FormatError, FormatProblem};
use crate::labels::columns::{LabelColumns, id_column};
use crate::parquet_file::{Leaf, ParquetFile, can_hold_text, catch_panics};
use crate::vectors::{CsvLines, VectorPlace, parquet_parts};

/// The column of the predicted classes.
const LABEL: &str = "label";

/// Calls `visit` with the id and the predicted class of each row; `None` for a row without a prediction.
///
/// # Errors
/// If the output cannot be read, or has no columns of ids and labels.
pub fn read_predicted_labels(
    path: &std::path::Path,
    visit: &mut dyn FnMut(&str, Option<&str>),
) -> Result<(), FormatError> {
    let place = VectorPlace::find(path)?;
    if place.has_extension(&["jsonl", "json"]) {
        let problem = "the predicted classes are read from CSV and Parquet, not from JSON lines";
        return Err(FormatError::content(path, problem).hint("predict into a .csv or .parquet"));
    }
    match &place.file {
        Some(name) if !place.has_extension(&["parquet"]) => read_csv(&place, name, visit),
        Some(name) => read_parquet(&place, name, visit),
        None => {
            let parts = parquet_parts(&place)?;
            parts.iter().try_for_each(|name| read_parquet(&place, name, visit))
        }
    }
}

/// Returns the columns of ids and of predicted classes.
fn columns(header: &StringRecord) -> Result<[usize; 2], FormatProblem> {
    let id = id_column(header, &LabelColumns::default())?;
    let label = header.iter().position(|name| name == LABEL);
    let missing = || FormatProblem::Content(format!("it has no columns of ids and of `{LABEL}`"));
    id.zip(label).map(|(id, label)| [id, label]).ok_or_else(missing)
}

fn read_csv(
    place: &VectorPlace,
    name: &str,
    visit: &mut dyn FnMut(&str, Option<&str>),
) -> Result<(), FormatError> {
    let file = Arc::new(place.open(name)?);
    let mut lines = CsvLines::new(file.path(), &file);
    let mut record = StringRecord::new();
    if !lines.read(&mut record)? {
        return Err(FormatError::content(file.path(), "the file is empty"));
    }
    let at = |problem| FormatError::new(file.path(), problem).at("line 1");
    let [id, label] = columns(&record).map_err(at)?;
    while lines.read(&mut record)? {
        let label = record.get(label).filter(|label| !label.is_empty());
        visit(record.get(id).unwrap_or_default(), label);
    }
    Ok(())
}

fn read_parquet(
    place: &VectorPlace,
    name: &str,
    visit: &mut dyn FnMut(&str, Option<&str>),
) -> Result<(), FormatError> {
    let file = ParquetFile::open(&place.folder, name)?;
    let texts: Vec<Leaf> =
        Leaf::all(&file.metadata).filter(|leaf| can_hold_text(&leaf.description)).collect();
    let header: StringRecord = texts.iter().map(|leaf| leaf.description.name()).collect();
    let columns = columns(&header).map_err(|problem| FormatError::new(&file.path, problem))?;
    let leaves = columns.map(|column| &texts[column]);
    file.check_inside(&leaves.map(|leaf| leaf.index))?;
    for group in 0..file.metadata.num_row_groups() {
        let rows = usize::try_from(file.metadata.row_group(group).num_rows()).unwrap_or_default();
        let read = |leaf: &Leaf| catch_panics(|| file.text_column(group, leaf)?.read(rows));
        let [ids, labels] =
            [read(leaves[0]), read(leaves[1])].map(|column| column.map_err(|error| file.damaged(&error)));
        for (id, label) in ids?.iter().zip(labels?) {
            visit(id.as_deref().unwrap_or_default(), label.as_deref());
        }
    }
    Ok(())
}
