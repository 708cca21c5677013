//! The confidence of a classifier, whether it was right, and runs of equal confidence.

use calmix_core::matrix::{MatrixOf, Scalar};
use calmix_core::softmax::argmax;

use crate::checked;
use crate::error::MetricsError;
use crate::exponential::{RelativeRow, inverse};

/// The confidence of every prediction and whether the predicted class was the true one.
///
/// The prediction is the class with the largest logit or probability, the first of equals.
#[derive(Debug, Clone, PartialEq)]
pub struct TopLabel {
    confidence: Vec<f64>,
    correct: Vec<bool>,
}

impl TopLabel {
    /// Takes confidences in [0, 1] and whether each prediction was right.
    ///
    /// # Errors
    /// If the lengths differ or a confidence is not a number in [0, 1].
    pub fn new(confidence: Vec<f64>, correct: Vec<bool>) -> Result<Self, MetricsError> {
        checked::length("flags of correct predictions", confidence.len(), correct.len())?;
        checked::values("the confidence of row", &confidence, "in [0, 1]", |c| (0.0..=1.0).contains(&c))?;
        Ok(Self { confidence, correct })
    }

    /// Takes the predictions of softmax(`logits` / `temperature`), computed in f64.
    ///
    /// # Errors
    /// If there is not one label per row, a label is not a class, a logit is not finite, or the temperature
    /// is not positive.
    pub fn from_logits<T: Scalar>(
        logits: MatrixOf<'_, T>,
        labels: &[u32],
        temperature: f64,
    ) -> Result<Self, MetricsError> {
        checked::temperature(temperature)?;
        let beta = inverse(temperature);
        // The mass is at least one, from the predicted class itself, so the confidence is in (0, 1].
        let confidence = |row: &[T], _| 1.0 / RelativeRow::new(row).mass(beta);
        Self::of_rows(logits, labels, checked::logit_row, confidence)
    }

    /// Takes the predictions of rows of probabilities.
    ///
    /// # Errors
    /// If there is not one label per row, a label is not a class, or a probability is not in [0, 1].
    pub fn from_probabilities<T: Scalar>(
        probabilities: MatrixOf<'_, T>,
        labels: &[u32],
    ) -> Result<Self, MetricsError> {
        Self::of_rows(probabilities, labels, checked::probability_row, |_, top| top.into())
    }

    fn of_rows<T: Scalar>(
        matrix: MatrixOf<'_, T>,
        labels: &[u32],
        check: impl Fn(usize, &[T]) -> Result<(), MetricsError>,
        confidence: impl Fn(&[T], T) -> f64,
    ) -> Result<Self, MetricsError> {
        checked::labels(matrix, labels)?;
        let mut all = Self { confidence: Vec::with_capacity(labels.len()), correct: Vec::new() };
        for (index, (row, &label)) in matrix.iter().zip(labels).enumerate() {
            check(index, row)?;
            let predicted = argmax(row);
            all.confidence.push(confidence(row, row[predicted]));
            all.correct.push(predicted == label as usize);
        }
        Ok(all)
    }

    /// Returns the number of predictions.
    pub fn len(&self) -> usize {
        self.confidence.len()
    }

    /// Returns whether there are no predictions.
    pub fn is_empty(&self) -> bool {
        self.confidence.is_empty()
    }

    /// Returns the confidences, in [0, 1].
    pub fn confidence(&self) -> &[f64] {
        &self.confidence
    }

    /// Returns whether each prediction was right.
    pub fn correct(&self) -> &[bool] {
        &self.correct
    }

    /// Returns the share of right predictions; zero without predictions.
    pub fn accuracy(&self) -> f64 {
        let right = self.correct.iter().filter(|&&right| right).count();
        right as f64 / self.len().max(1) as f64
    }
}

/// Rows in ascending order of confidence, in runs of equal confidence.
#[derive(Debug, Clone)]
pub(super) struct Ties {
    rows: Vec<usize>,
    /// The end of each run.
    ends: Vec<usize>,
}

impl Ties {
    pub(super) fn new(confidence: &[f64]) -> Self {
        let mut rows: Vec<usize> = (0..confidence.len()).collect();
        rows.sort_by(|&i, &j| confidence[i].total_cmp(&confidence[j]));
        let equal = |i: &usize, j: &usize| confidence[*i] == confidence[*j];
        let ends = rows.chunk_by(equal).scan(0, |end, run| {
            *end += run.len();
            Some(*end)
        });
        Self { ends: ends.collect(), rows }
    }

    /// Iterates over the runs, from the lowest confidence up.
    pub(super) fn runs(&self) -> impl DoubleEndedIterator<Item = &[usize]> {
        (0..self.ends.len()).map(|run| {
            let from = if run == 0 { 0 } else { self.ends[run - 1] };
            &self.rows[from..self.ends[run]]
        })
    }
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;

    use super::*;

    #[test]
    fn prediction_is_the_first_of_equals() {
        let p = [0.4, 0.4, 0.2, 0.1, 0.1, 0.8];
        let p = Matrix::new(&p, 2, 3).unwrap();
        let predictions = TopLabel::from_probabilities(p, &[1, 2]).unwrap();
        assert_eq!(predictions.correct(), [false, true]);
        assert_eq!(predictions.confidence(), [f64::from(0.4_f32), f64::from(0.8_f32)]);
        assert_eq!(predictions.accuracy(), 0.5);
    }

    #[test]
    fn f64_numbers_are_not_rounded() {
        let p = MatrixOf::new(&[0.7, 0.3], 1, 2).unwrap();
        assert_eq!(TopLabel::from_probabilities(p, &[0]).unwrap().confidence(), [0.7]);
        // The difference of the logits is below the precision of f32.
        let z = MatrixOf::new(&[1.0, 1.0 + 1e-9], 1, 2).unwrap();
        let predictions = TopLabel::from_logits(z, &[1], 1.0).unwrap();
        assert_eq!(predictions.correct(), [true]);
        assert!((predictions.confidence()[0] - (0.5 + 0.25e-9)).abs() < 1e-16);
        let outside = [1.0, 1.0_f64.next_up()];
        let outside = MatrixOf::new(&outside, 1, 2).unwrap();
        let message = TopLabel::from_probabilities(outside, &[0]).unwrap_err().to_string();
        assert_eq!(
            message,
            "the probability of class 1 in row 0 is 1.0000000000000002; it must be in [0, 1]"
        );
    }

    #[test]
    fn temperature_keeps_the_prediction() {
        let z = [0.0, 2.0, 1e38, -1e38];
        let z = Matrix::new(&z, 2, 2).unwrap();
        let predictions = TopLabel::from_logits(z, &[1, 1], 2.0).unwrap();
        let logistic = 1.0 / (1.0 + libm::exp(-1.0));
        assert!((predictions.confidence()[0] - logistic).abs() < 1e-15);
        assert_eq!(predictions.confidence()[1], 1.0);
        assert_eq!(predictions.correct(), [true, false]);
        let cold = TopLabel::from_logits(z, &[1, 1], f64::MIN_POSITIVE).unwrap();
        assert_eq!(cold.confidence(), [1.0, 1.0]);
    }

    #[test]
    fn invalid_input_is_named() {
        let z = Matrix::new(&[0.5, 0.5, f32::NAN, 1.0], 2, 2).unwrap();
        let message = |result: Result<TopLabel, MetricsError>| result.unwrap_err().to_string();
        assert_eq!(
            message(TopLabel::from_logits(z, &[0, 1], 1.0)),
            "the logit of class 0 in row 1 is NaN; it must be finite"
        );
        assert_eq!(
            message(TopLabel::from_probabilities(z, &[0, 1])),
            "the probability of class 0 in row 1 is NaN; it must be in [0, 1]"
        );
        assert_eq!(
            message(TopLabel::from_probabilities(z, &[2, 1])),
            "row 0 has label 2, but there are 2 classes"
        );
        assert_eq!(message(TopLabel::from_logits(z, &[0], 1.0)), "there are 1 labels, expected 2");
        assert_eq!(
            message(TopLabel::from_logits(z, &[0, 1], 0.0)),
            "the temperature is 0; it must be positive and finite"
        );
        assert_eq!(
            message(TopLabel::new(vec![0.5, 1.5], vec![true, true])),
            "the confidence of row 1 is 1.5; it must be in [0, 1]"
        );
        assert!(TopLabel::new(vec![f64::NAN], vec![true]).is_err());
        assert!(TopLabel::new(vec![0.5], vec![]).is_err());
        let no_classes = Matrix::new(&[], 1, 0).unwrap();
        assert!(TopLabel::from_logits(no_classes, &[0], 1.0).is_err());
        let nothing = Matrix::new(&[], 0, 0).unwrap();
        assert!(TopLabel::from_logits(nothing, &[], 1.0).unwrap().is_empty());
    }

    #[test]
    fn equal_confidences_are_one_run() {
        let runs =
            |confidence: &[f64]| Ties::new(confidence).runs().map(<[usize]>::to_vec).collect::<Vec<_>>();
        assert_eq!(runs(&[0.5, 0.9, 0.5, 0.1]), [vec![3], vec![0, 2], vec![1]]);
        assert_eq!(runs(&[0.0, -0.0]), [[1, 0]]);
        assert!(runs(&[]).is_empty());
    }
}
