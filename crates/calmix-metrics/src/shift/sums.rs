//! Sums over a batch of predictions, from which its verdict follows.
//!
//! All numbers are whole, real ones in units of 2⁻²⁴: their sum does not depend on the order of the rows. The verdict of a resumed
//! output is therefore that of one piece, and sums of several outputs can be added.

use serde::{Deserialize, Serialize};

/// One in the units of the sums.
pub const ONE: f64 = (1_u64 << 24) as f64;
/// The largest number that is added; larger ones count as it. Whitened coordinates are mostly below 10.
const MAX_ADDED: f64 = (1_u64 << 12) as f64;
/// The number of bins of the p-values.
pub const P_BINS: usize = 100;
/// The number of strangest rows that are kept.
const MAX_STRANGEST: usize = 5;

/// Sums over the rows of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSums {
    /// The number of rows with a prediction.
    pub rows: u64,
    /// The sums of the whitened coordinates of the features, in units of 2⁻²⁴; empty if the model has no reference features.
    pub coordinates: Vec<i64>,
    /// The sums of the calibrated probabilities of each class, in units of 2⁻²⁴, before any adaptation to another mix.
    pub probabilities: Vec<i64>,
    /// The sum of the largest of these probabilities of each row, in units of 2⁻²⁴.
    pub confidence: i64,
    /// The number of rows by predicted class.
    pub predicted: Vec<u64>,
    /// The number of rows by p-value, in 100 bins of equal width; empty if the model has no reference features.
    pub p_values: Vec<u64>,
    /// The five strangest rows, the strangest first.
    pub strangest: Vec<UnusualRow>,
}

/// A row that is unlike those of the reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnusualRow {
    /// The name of the row.
    pub name: String,
    /// How far its distance from the reference is from those of reference samples, in logarithms and units of 2⁻²⁴.
    pub distance: i64,
}

/// A row as it is added to the sums.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedRow {
    /// The whitened coordinates of the features; empty if the model has no reference features.
    pub coordinates: Vec<f64>,
    /// How far the logarithm of its Mahalanobis distance is from those of reference samples.
    pub distance: f64,
    /// The conformal p-value: the share of reference samples that are at least as strange.
    pub p_value: f64,
}

impl BatchSums {
    /// Creates empty sums of this number of coordinates and classes.
    pub fn new(coordinates: usize, classes: usize) -> Self {
        Self {
            coordinates: vec![0; coordinates],
            probabilities: vec![0; classes],
            predicted: vec![0; classes],
            p_values: vec![0; if coordinates > 0 { P_BINS } else { 0 }],
            ..Self::default()
        }
    }

    /// Adds a row; `probabilities` are calibrated.
    pub fn add(&mut self, name: &str, row: &ObservedRow, probabilities: &[f32]) {
        self.rows += 1;
        for (sum, &number) in self.coordinates.iter_mut().zip(&row.coordinates) {
            *sum = sum.saturating_add(fixed(number));
        }
        let mut top = 0;
        for (class, (sum, &number)) in self.probabilities.iter_mut().zip(probabilities).enumerate() {
            *sum = sum.saturating_add(fixed(number.into()));
            if number > probabilities[top] {
                top = class;
            }
        }
        if let (Some(count), Some(&number)) = (self.predicted.get_mut(top), probabilities.get(top)) {
            *count += 1;
            self.confidence = self.confidence.saturating_add(fixed(number.into()));
        }
        if !self.p_values.is_empty() {
            let last = self.p_values.len() - 1;
            let bin = (row.p_value * self.p_values.len() as f64).ceil() as usize;
            self.p_values[bin.saturating_sub(1).min(last)] += 1;
            self.add_strange(UnusualRow { name: name.to_owned(), distance: fixed(row.distance) });
        }
    }

    /// Adds the sums of another batch; `false`, and nothing is added, if they are of another model.
    #[must_use]
    pub fn add_sums(&mut self, other: &Self) -> bool {
        if !self.has_shape_of(other) {
            return false;
        }
        self.rows = self.rows.saturating_add(other.rows);
        self.confidence = self.confidence.saturating_add(other.confidence);
        let signed =
            [(&mut self.coordinates, &other.coordinates), (&mut self.probabilities, &other.probabilities)];
        for (sums, others) in signed {
            sums.iter_mut().zip(others).for_each(|(sum, &other)| *sum = sum.saturating_add(other));
        }
        for (sums, others) in [(&mut self.predicted, &other.predicted), (&mut self.p_values, &other.p_values)]
        {
            sums.iter_mut().zip(others).for_each(|(sum, &other)| *sum = sum.saturating_add(other));
        }
        for row in &other.strangest {
            self.add_strange(row.clone());
        }
        true
    }

    /// Returns whether both are sums of the same model, which a file does not guarantee.
    pub fn has_shape_of(&self, other: &Self) -> bool {
        let shape = |sums: &Self| {
            [sums.coordinates.len(), sums.probabilities.len(), sums.predicted.len(), sums.p_values.len()]
        };
        shape(self) == shape(other) && other.strangest.len() <= MAX_STRANGEST
    }

    /// Returns the mean of some sums.
    pub(super) fn mean(&self, sums: &[i64]) -> Vec<f64> {
        let rows = self.rows.max(1) as f64;
        sums.iter().map(|&sum| sum as f64 / ONE / rows).collect()
    }

    fn add_strange(&mut self, row: UnusualRow) {
        let order =
            |a: &UnusualRow, b: &UnusualRow| b.distance.cmp(&a.distance).then_with(|| a.name.cmp(&b.name));
        let place = self.strangest.partition_point(|other| order(other, &row).is_lt());
        if place < MAX_STRANGEST {
            self.strangest.insert(place, row);
            self.strangest.truncate(MAX_STRANGEST);
        }
    }
}

fn fixed(number: f64) -> i64 {
    libm::rint(number.clamp(-MAX_ADDED, MAX_ADDED) * ONE) as i64
}
