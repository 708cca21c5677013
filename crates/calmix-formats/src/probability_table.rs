//! Tables of the probabilities that a model gave to samples, as CSV or Parquet: those of `calmix predict --probabilities`, and those
//! of any program with a column per class.
//!
//! The columns of classes are called `p(CLASS)`, or by the classes alone if they are all columns beside ids, groups and labels; in
//! Parquet also one list of numbers, whose classes the caller names or the file does (`calmix.classes`). A row without any number is
//! one that the model could not predict.

mod csv_columns;
mod options;
mod parquet_columns;
mod table;

use std::path::Path;

use crate::error::FormatError;
use crate::vectors::VectorPlace;

pub use options::ProbabilityOptions;
pub use table::ProbabilityTable;

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
