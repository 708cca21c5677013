//! The classes of all files: by their names, or else by the labels that occur.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::NamedFile;
use super::image_columns::ImageColumns;
use super::image_rows::ImageRows;
use crate::error::{DataError, DataProblem};
use crate::parquet_file::ParquetFile;
use crate::source::labels_csv::LabelColumns;
use crate::source::numbered_classes::{HINT, numbered_classes};

/// What was found in the files so far.
#[derive(Debug, Default)]
pub(super) struct FoundClasses {
    rows: u64,
    /// The names of the classes, and the file that has them.
    names: Option<(Vec<String>, String)>,
    labels: BTreeSet<u32>,
    highest: Option<PlacedLabel>,
}

/// The highest label, and its first place.
#[derive(Debug)]
struct PlacedLabel {
    label: u32,
    path: PathBuf,
    row: u64,
}

impl FoundClasses {
    /// Takes in the labels of a file, and returns how many rows it has.
    pub(super) fn add(
        &mut self,
        folder: &Path,
        named: &NamedFile,
        columns: &LabelColumns,
    ) -> Result<u64, DataError> {
        let file = ParquetFile::open(folder, &named.name)?;
        let columns = ImageColumns::find(&file, columns, named.subset)?;
        if let Some(names) = columns.class_names(&file)? {
            self.name(names, &file)?;
        }
        self.rows += file.rows;
        if columns.label.is_none() {
            return Ok(file.rows);
        }
        let mut rows = ImageRows::labels(&file, &columns);
        while let Some(row) = rows.next()? {
            let Some(label) = row.label else { continue };
            self.labels.insert(label);
            if self.highest.as_ref().is_none_or(|highest| highest.label < label) {
                self.highest = Some(PlacedLabel { label, path: file.path.clone(), row: row.number });
            }
        }
        Ok(file.rows)
    }

    fn name(&mut self, names: Vec<String>, file: &ParquetFile) -> Result<(), DataError> {
        match &self.names {
            None => self.names = Some((names, file.relative.clone())),
            Some((known, _)) if *known == names => {}
            Some((_, other)) => {
                let problem = format!("it has other class names, or in another order, than {other}");
                let error = DataError::new(&file.path, DataProblem::Content(problem));
                return Err(error.hint("keep datasets with different classes in different folders"));
            }
        }
        Ok(())
    }

    /// Rows of all files.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// The classes, in the order of their numbers.
    ///
    /// # Errors
    /// If a label has no name, or the highest one is probably a mistake.
    pub(super) fn finish(self) -> Result<Vec<String>, DataError> {
        let names = self.names.map(|(names, _)| names);
        let Some(PlacedLabel { label, path, row }) = self.highest else {
            return Ok(names.unwrap_or_default());
        };
        let classes = match names {
            Some(names) if label as usize >= names.len() => {
                let problem = format!("the label is {label}, but the metadata name {} classes", names.len());
                Err(DataProblem::Content(problem))
            }
            Some(names) => Ok(names),
            None => numbered_classes(label, self.labels.len()),
        };
        classes.map_err(|problem| DataError::new(path, problem).at(format!("row {row}")).hint(HINT))
    }
}
