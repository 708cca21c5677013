//! Labels in a one-dimensional array of integers or text.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::array_data::ArrayData;
use crate::error::{FormatError, FormatProblem};
use crate::labels::text::parse_label;
use crate::npy::NpyType;
use crate::read_at::read_error;

/// The names of label arrays.
pub(super) const LABEL_NAMES: [&str; 4] = ["labels", "label", "y", "targets"];

#[derive(Debug)]
pub struct ArrayLabels {
    path: PathBuf,
    data: ArrayData,
    item: NpyType,
}

/// A sequential reader for labels.
pub struct LabelStream {
    path: PathBuf,
    from: Box<dyn Read + Send>,
    item: NpyType,
    row: u64,
}

impl ArrayLabels {
    /// Checks that an array has one label per row.
    pub(super) fn new(
        path: &Path,
        data: ArrayData,
        item: NpyType,
        shape: &[u64],
        rows: u64,
    ) -> Result<Self, FormatError> {
        let wrong = |problem: String| FormatError::content(path, problem);
        if matches!(item, NpyType::Float(_)) {
            let hint = "save them as whole numbers, -1 for no label: `labels.astype('int64')`";
            return Err(wrong("its labels are floating-point numbers".into()).hint(hint));
        }
        if shape != [rows] {
            let problem =
                format!("its labels have the shape {shape:?}, but there are {rows} rows of vectors");
            return Err(wrong(problem).hint("save one label per row"));
        }
        Ok(Self { path: path.to_owned(), data, item })
    }

    /// Starts reading at a row.
    pub fn stream(&self, first: u64) -> Result<LabelStream, FormatError> {
        let from = self.data.reader(first * self.item.bytes() as u64);
        let from = from.map_err(|error| read_error(&self.path, error))?;
        Ok(LabelStream { path: self.path.clone(), from, item: self.item, row: first })
    }
}

impl LabelStream {
    /// Appends the next labels.
    ///
    /// # Errors
    /// If they cannot be read, or one of them is not a label.
    pub fn read(&mut self, rows: usize, into: &mut Vec<Option<String>>) -> Result<(), FormatError> {
        let mut item = vec![0; self.item.bytes()];
        for _ in 0..rows {
            self.from.read_exact(&mut item).map_err(|error| read_error(&self.path, error))?;
            let wrong = |problem| FormatError::new(&self.path, problem).at(format!("row {}", self.row));
            let label = match self.item {
                NpyType::Text { .. } => {
                    text(&item).ok_or_else(|| wrong(FormatProblem::Format("the label is not text".into())))?
                }
                int => int.int(&item).to_string(),
            };
            into.push(parse_label(&label).map_err(wrong)?);
            self.row += 1;
        }
        Ok(())
    }
}

/// Decodes four-byte characters padded with zeros.
fn text(item: &[u8]) -> Option<String> {
    let text: String = item
        .as_chunks()
        .0
        .iter()
        .map(|one| char::from_u32(u32::from_le_bytes(*one)))
        .collect::<Option<_>>()?;
    Some(text.trim_end_matches('\0').to_owned())
}
