//! The rows of a table of probabilities, checked as they are added.

use std::path::PathBuf;

use crate::error::FormatProblem;

/// The maximum number of classes, as for vectors.
pub(super) const MAX_CLASSES: usize = 1 << 16;

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

impl ProbabilityTable {
    /// Adds a row: nothing if it has no prediction.
    pub(super) fn add(&mut self, id: Option<String>, row: &[f32]) -> Result<(), FormatProblem> {
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
    pub(super) fn set_classes(&mut self, classes: Vec<String>) -> Result<(), FormatProblem> {
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
