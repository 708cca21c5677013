//! The classes of all files: their names, or else the labels that occur.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::image_columns::ImageColumns;
use super::image_rows::ImageRows;
use crate::error::{FormatError, FormatProblem};
use crate::labels::columns::LabelColumns;
use crate::labels::text::{HINT, numbered_classes};
use crate::parquet_file::ParquetFile;

/// The findings in the files so far.
#[derive(Debug, Default)]
pub struct FoundClasses {
    rows: u64,
    /// The class names, and the file that has them.
    names: Option<(Vec<String>, String)>,
    labels: BTreeSet<u32>,
    highest: Option<PlacedLabel>,
}

/// The highest label, and its first location.
#[derive(Debug)]
struct PlacedLabel {
    label: u32,
    path: PathBuf,
    row: u64,
}

impl FoundClasses {
    /// Adds the labels of `folder/name`, and returns its number of rows. With `needs_label`, the user must choose a label
    /// column if one is possible.
    ///
    /// # Errors
    /// If the file is damaged, has no image column, or names other classes than the files before it.
    pub fn add(
        &mut self,
        folder: &Path,
        name: &str,
        columns: &LabelColumns,
        needs_label: bool,
    ) -> Result<u64, FormatError> {
        let file = ParquetFile::open(folder, name)?;
        let columns = ImageColumns::find(&file, columns, needs_label)?;
        if let Some(names) = columns.class_names(&file)? {
            self.name(names, &file)?;
        }
        self.rows += file.rows;
        if columns.label.is_none() {
            return Ok(file.rows);
        }
        let mut rows = ImageRows::labels(&file, &columns);
        while let Some(row) = rows.next_row()? {
            let Some(label) = row.label else { continue };
            self.labels.insert(label);
            if self.highest.as_ref().is_none_or(|highest| highest.label < label) {
                self.highest = Some(PlacedLabel { label, path: file.path.clone(), row: row.number });
            }
        }
        Ok(file.rows)
    }

    fn name(&mut self, names: Vec<String>, file: &ParquetFile) -> Result<(), FormatError> {
        match &self.names {
            None => self.names = Some((names, file.relative.clone())),
            Some((known, _)) if *known == names => {}
            Some((_, other)) => {
                let problem = format!("it has other class names, or in another order, than {other}");
                let error = FormatError::content(&file.path, problem);
                return Err(error.hint("keep datasets with different classes in different folders"));
            }
        }
        Ok(())
    }

    /// Returns the number of rows in all files.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the classes in the order of their numbers.
    ///
    /// # Errors
    /// If a label has no name, or the highest one is probably a mistake.
    pub fn finish(self) -> Result<Vec<String>, FormatError> {
        let names = self.names.map(|(names, _)| names);
        let Some(PlacedLabel { label, path, row }) = self.highest else {
            return Ok(names.unwrap_or_default());
        };
        let classes = match names {
            Some(names) if label as usize >= names.len() => {
                let problem = format!("the label is {label}, but the metadata name {} classes", names.len());
                Err(FormatProblem::Content(problem))
            }
            Some(names) => Ok(names),
            None => numbered_classes(label, self.labels.len()),
        };
        classes.map_err(|problem| FormatError::new(path, problem).at(format!("row {row}")).hint(HINT))
    }
}
