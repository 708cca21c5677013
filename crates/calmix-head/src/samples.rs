//! The vectors that heads are trained on.

use std::collections::BTreeSet;

use calmix_core::matrix::Matrix;
use calmix_core::samples::label_weight;

use crate::error::HeadError;
use crate::sample_vectors::SampleVectors;

/// The vectors of samples, in one view or several, and their labels.
#[derive(Debug, Clone, Copy)]
pub struct HeadSamples<'a> {
    /// The ids of the samples, ascending. The random draws of a sample depend on its id, not on its row.
    pub ids: &'a [u64],
    /// One row for each sample: its vector without augmentation, then the weak views, then the strong ones.
    pub vectors: SampleVectors<'a>,
    /// The number of weak views; 0 to train on the vector without augmentation.
    pub weak: u8,
    /// The number of strong views; 0 to train on the vector without augmentation.
    pub strong: u8,
    /// The class of each sample; `None` if it has no label.
    pub labels: &'a [Option<u32>],
    /// The names of the classes.
    pub classes: &'a [String],
    /// The [group](calmix_metrics::groups) of each sample; empty if each is a group of its own.
    pub groups: &'a [u32],
    /// The rows, ascending, whose labels were chosen rather than drawn at random: they are trained on, but neither calibrate nor
    /// select a head.
    pub chosen: &'a [usize],
    /// The weight of each sample in training, if it is trained on with its label; empty if all are 1. Weights calibrate, evaluate and
    /// select nothing: that is about the labels as they were drawn.
    pub weights: &'a [f64],
}

/// The rows of [`HeadSamples`] that a head is trained on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingRows {
    /// Rows that are trained on with their labels.
    pub labelled: Vec<usize>,
    /// Rows that are trained on without labels; a row may be in both lists.
    pub unlabelled: Vec<usize>,
}

/// Labelled samples that no head is trained on.
#[derive(Debug, Clone, Copy)]
pub struct ValidationSamples<'a> {
    /// The ids of the samples.
    pub ids: &'a [u64],
    /// One vector per sample, without augmentation.
    pub vectors: Matrix<'a>,
    /// One class per sample.
    pub labels: &'a [u32],
    /// The [group](calmix_metrics::groups) of each; empty if each is a group of its own.
    pub groups: &'a [u32],
}

impl HeadSamples<'_> {
    /// Returns the length of a vector.
    pub fn width(&self) -> usize {
        self.vectors.width() / self.views()
    }

    fn views(&self) -> usize {
        1 + usize::from(self.weak) + usize::from(self.strong)
    }

    /// Appends a view of the sample in a row; view 0 is the one without augmentation.
    pub(crate) fn read(&self, row: usize, view: usize, into: &mut Vec<f32>) -> Result<(), HeadError> {
        let width = self.width();
        self.vectors.read(row, view * width..(view + 1) * width, into)
    }

    /// Appends two views of the sample in a row. Both come from one read: a system call takes longer than reading the numbers
    /// between them.
    pub(crate) fn read_two(
        &self,
        row: usize,
        [first, second]: [usize; 2],
        into: [&mut Vec<f32>; 2],
        read: &mut Vec<f32>,
    ) -> Result<(), HeadError> {
        let [into_first, into_second] = into;
        if let SampleVectors::Memory(_) = self.vectors {
            self.read(row, first, into_first)?;
            return self.read(row, second, into_second);
        }
        let width = self.width();
        let start = first.min(second);
        let end = first.max(second) + 1;
        read.clear();
        self.vectors.read(row, start * width..end * width, read)?;
        into_first.extend_from_slice(&read[(first - start) * width..][..width]);
        into_second.extend_from_slice(&read[(second - start) * width..][..width]);
        Ok(())
    }

    /// Reads the vectors without augmentation of some rows, one after the other.
    ///
    /// # Errors
    /// If a row does not exist or cannot be read.
    pub fn unaugmented(&self, rows: &[usize]) -> Result<Vec<f32>, HeadError> {
        self.first_dimensions(rows, self.width())
    }

    /// Reads the first `dimensions` numbers of the vectors without augmentation of some rows.
    pub(crate) fn first_dimensions(&self, rows: &[usize], dimensions: usize) -> Result<Vec<f32>, HeadError> {
        let mut numbers = Vec::with_capacity(rows.len() * dimensions);
        for &row in rows {
            self.vectors.read(row, 0..dimensions, &mut numbers)?;
        }
        Ok(numbers)
    }

    pub(crate) fn is_chosen(&self, row: usize) -> bool {
        self.chosen.binary_search(&row).is_ok()
    }

    /// Returns the weight of a label in training.
    pub(crate) fn weight(&self, row: usize) -> f64 {
        self.weights.get(row).copied().unwrap_or(1.0)
    }

    pub(crate) fn label(&self, row: usize) -> Option<u32> {
        self.labels.get(row).copied().flatten()
    }

    /// Checks that ids, vectors and labels agree, and that all numbers are finite.
    ///
    /// # Errors
    /// If not; the message names the first row.
    pub fn check(&self, rows: &TrainingRows) -> Result<(), HeadError> {
        let count = self.vectors.rows();
        let ids = self.ids.len();
        let labels = self.labels.len();
        if ids != count || labels != count {
            let text = format!("{count} rows of vectors, but {ids} ids and {labels} labels");
            return Err(HeadError::Input(text));
        }
        let groups = self.groups.len();
        if groups != 0 && groups != count {
            return Err(HeadError::Input(format!("{count} rows of vectors, but {groups} groups")));
        }
        let weights = self.weights.len();
        if weights != 0 && weights != count {
            return Err(HeadError::Input(format!("{count} rows of vectors, but {weights} weights")));
        }
        for (row, &weight) in self.weights.iter().enumerate() {
            if let Some(problem) = label_weight::why_not(weight) {
                return Err(HeadError::Input(format!("row {row}: {problem}")));
            }
        }
        if !self.vectors.width().is_multiple_of(self.views()) || self.width() == 0 {
            let numbers = self.vectors.width();
            let views = self.views();
            let text = format!("rows of {numbers} numbers cannot hold {views} vectors of equal length");
            return Err(HeadError::Input(text));
        }
        if let Some(row) = self.ids.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(HeadError::Input(format!("row {}: its id is not above the one before", row + 1)));
        }
        let is_invalid = |label: Option<u32>| label.is_some_and(|class| class as usize >= self.classes.len());
        if let Some(row) = self.labels.iter().position(|&label| is_invalid(label)) {
            let label = self.labels[row].unwrap_or_default();
            let classes = self.classes.len();
            return Err(HeadError::Input(format!(
                "row {row}: class {label}, but there are {classes} classes"
            )));
        }
        if let Some(row) = self.vectors.first_non_finite() {
            let text = format!("row {row}: a number of its vector is infinite or not a number");
            return Err(HeadError::Input(text));
        }
        let unlabelled = rows.labelled.iter().find(|&&row| self.label(row).is_none());
        if let Some(row) = unlabelled {
            return Err(HeadError::Input(format!("row {row} is to be trained with its label, but has none")));
        }
        if rows.labelled.is_empty() {
            return Err(HeadError::Input("no sample has a label".to_owned()));
        }
        if !self.chosen.is_sorted() || self.chosen.last().is_some_and(|&row| row >= count) {
            return Err(HeadError::Input("the chosen rows are not in order, or do not exist".to_owned()));
        }
        check_classes(rows.labelled.len(), self.classes.len())?;
        match rows.unlabelled.iter().find(|&&row| row >= count) {
            Some(row) => Err(HeadError::Input(format!("there is no row {row}"))),
            None => Ok(()),
        }
    }
}

/// The number of classes above which there must be at least two labels per class.
const MANY_CLASSES: usize = 10_000;

/// Refuses labels that are almost all different, such as ids: each would be a class of its own, and training would take days.
pub fn check_classes(labels: usize, classes: usize) -> Result<(), HeadError> {
    if classes <= MANY_CLASSES || labels >= classes.saturating_mul(2) {
        return Ok(());
    }
    Err(HeadError::Input(format!(
        "{classes} classes for {labels} labels: almost every label is a class of its own, as in a column of ids; use labels \
         that several samples share"
    )))
}

impl TrainingRows {
    /// Returns the rows without the labels of `held_out`, which is ascending. If there are unlabelled rows, the held-out ones
    /// join them: at prediction time, too, a model was trained on the user's unlabelled samples.
    pub(crate) fn without_labels(&self, held_out: &[usize]) -> Self {
        let labelled = self.labelled.iter().copied().filter(|row| held_out.binary_search(row).is_err());
        let mut unlabelled = self.unlabelled.clone();
        if !unlabelled.is_empty() {
            let present: BTreeSet<usize> = unlabelled.iter().copied().collect();
            unlabelled.extend(held_out.iter().filter(|row| !present.contains(row)));
        }
        Self { labelled: labelled.collect(), unlabelled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_refused_as_labels() {
        assert!(check_classes(10_000, 10_000).is_ok() && check_classes(40_000, 20_000).is_ok());
        let error = check_classes(300_000, 300_000).unwrap_err().to_string();
        assert!(error.contains("300000 classes for 300000 labels") && error.contains("ids"), "{error}");
    }

    #[test]
    fn held_out_rows_are_among_the_unlabelled() {
        let rows = TrainingRows { labelled: vec![0, 2, 4], unlabelled: vec![5, 4, 3, 1] };
        let kept = rows.without_labels(&[2, 4]);
        assert_eq!(kept, TrainingRows { labelled: vec![0], unlabelled: vec![5, 4, 3, 1, 2] });
        let alone = TrainingRows { unlabelled: Vec::new(), ..rows };
        assert_eq!(alone.without_labels(&[2, 4]).unlabelled, []);
    }
}
