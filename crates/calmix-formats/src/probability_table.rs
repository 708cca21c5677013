//! Tables of the probabilities that a model gave to samples, as CSV or Parquet: those of `calmix predict --probabilities`, and those
//! of any program with a column per class.
//!
//! The columns of classes are called `p(CLASS)`, or by the classes alone if they are all columns beside ids, groups and labels; in
//! Parquet also one list of numbers, whose classes the caller names or the file does (`calmix.classes`). A row without any number is
//! one that the model could not predict.

mod csv_columns;
mod parquet_columns;

use std::path::{Path, PathBuf};

use crate::error::{FormatError, FormatProblem};
use crate::labels::columns::LabelColumns;
use crate::vectors::VectorPlace;

/// The maximum number of classes, as for vectors.
const MAX_CLASSES: usize = 1 << 16;

/// The largest distance of a row's sum from 1, which allows for probabilities in half precision or with few digits.
const SUM_TOLERANCE: f64 = 1e-2;

/// Probabilities with the ids of their samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProbabilityTable {
    /// The file or folder.
    pub path: PathBuf,
    /// The classes of the columns.
    pub classes: Vec<String>,
    /// The id of each row, or its number from 0.
    pub ids: Vec<String>,
    /// Whether a row has probabilities.
    pub is_predicted: Vec<bool>,
    /// The probabilities of the rows that have them, row by row.
    pub probabilities: Vec<f32>,
}

/// What the user says about the columns.
#[derive(Debug, Clone, Default)]
pub struct ProbabilityOptions {
    /// The classes, in the order of a list column, or the names of their columns; empty if the file says it.
    pub classes: Vec<String>,
    /// The column of ids; by default one with a usual name.
    pub id_column: Option<String>,
}

impl ProbabilityTable {
    /// Reads a CSV, a Parquet file or a folder of Parquet files.
    ///
    /// # Errors
    /// If it cannot be read, or a row has numbers that are not probabilities.
    pub fn read(path: &Path, options: &ProbabilityOptions) -> Result<Self, FormatError> {
        let place = VectorPlace::find(path)?;
        let mut table = Self { path: path.to_owned(), ..Self::default() };
        if place.file.is_none() || place.has_extension(&["parquet"]) {
            parquet_columns::read(&place, options, &mut table)?;
        } else {
            csv_columns::read(&place, options, &mut table)?;
        }
        if table.is_predicted.is_empty() {
            return Err(FormatError::content(path, "there are no rows in it"));
        }
        Ok(table)
    }

    /// Adds a row: nothing if it has no prediction.
    fn add(&mut self, id: Option<String>, row: &[f32]) -> Result<(), FormatProblem> {
        let number = self.ids.len();
        let id = id.unwrap_or_else(|| number.to_string());
        if !row.is_empty() {
            if row.len() != self.classes.len() {
                let problem = format!(
                    "row {number} ({id}) has {} probabilities, but there are {} classes",
                    row.len(),
                    self.classes.len()
                );
                return Err(FormatProblem::Content(problem));
            }
            if let Some(class) = row.iter().position(|p| !(0.0..=1.0).contains(p)) {
                let problem = format!(
                    "row {number} ({id}): the probability of {:?} is {}, which is not between 0 and 1; scores or logits are none",
                    self.classes[class], row[class]
                );
                return Err(FormatProblem::Content(problem));
            }
            let sum: f64 = row.iter().map(|&p| f64::from(p)).sum();
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                let problem = format!("row {number} ({id}): its probabilities sum to {sum:.4}, not to 1");
                return Err(FormatProblem::Content(problem));
            }
        }
        self.ids.push(id);
        self.is_predicted.push(!row.is_empty());
        self.probabilities.extend_from_slice(row);
        Ok(())
    }

    /// Sets the classes.
    fn set_classes(&mut self, classes: Vec<String>) -> Result<(), FormatProblem> {
        if classes.len() < 2 || classes.len() > MAX_CLASSES {
            let problem = format!("{} classes, expected 2 to {MAX_CLASSES}", classes.len());
            return Err(FormatProblem::Content(problem));
        }
        let mut sorted: Vec<&String> = classes.iter().collect();
        sorted.sort_unstable();
        if let Some([twice, ..]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(FormatProblem::Content(format!("the class {twice:?} has two columns")));
        }
        self.classes = classes;
        Ok(())
    }
}

impl ProbabilityOptions {
    fn label_columns(&self) -> LabelColumns {
        LabelColumns { path: self.id_column.clone(), label: None }
    }
}

/// Returns the columns of classes among those that can hold probabilities, with their classes: those that the user names, those called
/// `p(CLASS)`, or else all.
fn class_columns(names: &[&str], wanted: &[String]) -> Result<Vec<(usize, String)>, FormatProblem> {
    let of_predict = |name: &str| name.strip_prefix("p(")?.strip_suffix(')').map(str::to_owned);
    if !wanted.is_empty() {
        let place = |class: &String| {
            let is_it = |name: &&str| *name == class || of_predict(name).as_ref() == Some(class);
            let found = names.iter().position(is_it).map(|column| (column, class.clone()));
            let missing = || format!("no column `{class}` or `p({class})`; there are: {}", names.join(", "));
            found.ok_or_else(|| FormatProblem::Content(missing()))
        };
        return wanted.iter().map(place).collect();
    }
    let marked = names.iter().enumerate().filter_map(|(column, name)| Some((column, of_predict(name)?)));
    let marked: Vec<(usize, String)> = marked.collect();
    if !marked.is_empty() {
        return Ok(marked);
    }
    Ok(names.iter().enumerate().map(|(column, name)| (column, (*name).to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str, options: &ProbabilityOptions) -> Result<ProbabilityTable, String> {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("p.csv");
        fs::write(&path, text).unwrap();
        let read = ProbabilityTable::read(&path, options);
        read.map_err(|error| error.to_string().replace(&temp.path().display().to_string(), ""))
    }

    #[test]
    fn rows_of_predict_and_plain_rows_are_the_same() {
        let of_predict = "path,label,confidence,margin,set,abstain,error,p(cat),\"p(dog, big)\"\n\
                          a.png,cat,0.75,0.5,cat,false,,0.75,0.25\n\
                          b.png,,,,,,no image,,\n\
                          c.png,\"dog, big\",0.875,0.75,cat|dog,true,,0.125,0.875\n";
        let plain = "id,cat,\"dog, big\",group\na.png,0.75,0.25,1\nb.png,,,1\nc.png,0.125,0.875,2\n";
        let found = read(of_predict, &ProbabilityOptions::default()).unwrap();
        assert_eq!(found.classes, ["cat", "dog, big"]);
        assert_eq!(found.ids, ["a.png", "b.png", "c.png"]);
        assert_eq!(found.is_predicted, [true, false, true]);
        assert_eq!(found.probabilities, [0.75, 0.25, 0.125, 0.875]);
        let other = read(plain, &ProbabilityOptions::default()).unwrap();
        assert_eq!(ProbabilityTable { path: found.path.clone(), ..other }, found);
        let named = ProbabilityOptions { classes: vec!["dog, big".into(), "cat".into()], id_column: None };
        let turned = read(of_predict, &named).unwrap();
        assert_eq!(turned.probabilities, [0.25, 0.75, 0.875, 0.125]);
        let unnamed = read("cat,dog\n0.5,0.5\n1,0\n", &ProbabilityOptions::default()).unwrap();
        assert_eq!(unnamed.ids, ["0", "1"]);
    }

    #[test]
    fn other_numbers_are_refused() {
        for (text, options, problem) in [
            (
                "id,cat,dog\na,0.5,0.4\n",
                &[][..],
                "line 2: row 0 (a): its probabilities sum to 0.9000, not to 1",
            ),
            ("id,cat,dog\na,3,-2\n", &[], "the probability of \"cat\" is 3, which is not between 0 and 1"),
            ("id,cat,dog\na,NaN,1\n", &[], "is NaN"),
            ("id,cat,dog\na,0.5,\n", &[], "has 1 probabilities, but there are 2 classes"),
            ("id,cat,dog\na,0.5,x\n", &[], "line 2: column `dog` holds \"x\", which is not a number"),
            ("id,cat,note\na,1,fine\n", &[], "column `note` holds \"fine\""),
            ("id,cat\na,1\n", &[], "1 classes, expected 2"),
            ("id,cat,cat\na,0.5,0.5\n", &[], "the class \"cat\" has two columns"),
            ("id,cat,dog\na,1,0\n", &["cat", "owl"], "no column `owl` or `p(owl)`; there are: cat, dog"),
            ("id,cat,dog\n", &[], "there are no rows"),
            ("", &[], "the file is empty"),
        ] {
            let classes = options.iter().map(|&name| name.to_owned()).collect();
            let refused = read(text, &ProbabilityOptions { classes, id_column: None }).unwrap_err();
            assert!(refused.contains(problem), "{text}: {refused}");
        }
    }
}
