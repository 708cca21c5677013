//! The projection of a backbone's features: centred, scaled to unit length, and rotated to their principal directions.
//!
//! A vector may consist of several sets of features, such as those of two backbones. Each set is centred and scaled to the same length,
//! so that none dominates the others, however long its vectors are.

mod principal;

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;

use crate::error::HeadError;
use crate::product::{Operand, multiply};
use crate::progress::check_stop;

/// The smallest length by which a vector is divided; a shorter one is not scaled up.
pub const MIN_LENGTH: f32 = 1e-12;
/// The number of rows whose products are added in f32 before they go into a sum of f64.
const BLOCK: usize = 256;

/// A projection: centres vectors, scales them to unit length, and keeps their principal directions.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    mean: Vec<f32>,
    /// One direction for each dimension that is kept; empty if all are kept as they are.
    rotation: Vec<f32>,
    dimensions: usize,
    /// The widths of the sets of features; a single one for vectors of one set.
    sets: Vec<usize>,
}

impl Projection {
    /// Fits a projection to feature vectors, keeping the given number of dimensions; 0 for all.
    ///
    /// # Errors
    /// If there are no vectors, or a number is not finite.
    pub fn fit(vectors: Matrix<'_>, dimensions: usize) -> Result<Self, HeadError> {
        Self::fit_unless(vectors, &[], dimensions, &AtomicBool::new(false))
    }

    /// Fits like [`fit`](Self::fit) to vectors that consist of sets of features of these widths (none: of one set), and ends when
    /// `stop` becomes true: thousands of dimensions take minutes.
    pub fn fit_unless(
        vectors: Matrix<'_>,
        sets: &[usize],
        dimensions: usize,
        stop: &AtomicBool,
    ) -> Result<Self, HeadError> {
        let width = vectors.width();
        if vectors.rows() == 0 || width == 0 {
            return Err(HeadError::Input("there are no features to fit a projection to".to_owned()));
        }
        if let Some(row) = vectors.iter().position(|row| row.iter().any(|number| !number.is_finite())) {
            return Err(HeadError::Input(format!("row {row}: a feature is infinite or not a number")));
        }
        let mut sums = vec![0.0_f64; width];
        for row in vectors.iter() {
            sums.iter_mut().zip(row).for_each(|(sum, &number)| *sum += f64::from(number));
        }
        let mean: Vec<f32> = sums.iter().map(|sum| (sum / vectors.rows() as f64) as f32).collect();
        let centred = Self::new(mean, Vec::new())?.with_sets(sets)?;
        if dimensions == 0 || dimensions >= width {
            return Ok(centred);
        }
        let moments = moments(vectors, &centred, stop)?;
        let rotation = principal::directions(&moments, width, dimensions, stop)?;
        let rotation = rotation.into_iter().map(|number| number as f32).collect();
        Ok(Self { rotation, dimensions, ..centred })
    }

    /// Creates a projection from its mean and its directions, one after the other.
    ///
    /// # Errors
    /// If the directions are not vectors of the length of the mean.
    pub fn new(mean: Vec<f32>, rotation: Vec<f32>) -> Result<Self, HeadError> {
        let width = mean.len();
        if width == 0 || !rotation.len().is_multiple_of(width) {
            let numbers = rotation.len();
            return Err(HeadError::Input(format!(
                "{numbers} numbers are not directions in {width} dimensions"
            )));
        }
        let dimensions = if rotation.is_empty() { width } else { rotation.len() / width };
        Ok(Self { mean, rotation, dimensions, sets: vec![width] })
    }

    /// Divides the vectors into sets of features of these widths; none for one set.
    ///
    /// # Errors
    /// If a set is empty, or the sets are not as long as a vector together.
    pub fn with_sets(self, sets: &[usize]) -> Result<Self, HeadError> {
        let width = self.width();
        if sets.is_empty() {
            return Ok(Self { sets: vec![width], ..self });
        }
        let all = sets.iter().try_fold(0_usize, |sum, &set| sum.checked_add(set));
        if sets.contains(&0) || all != Some(width) {
            return Err(HeadError::Input(format!("sets of {sets:?} features are not vectors of {width}")));
        }
        Ok(Self { sets: sets.to_vec(), ..self })
    }

    /// Returns the widths of the sets of features that a vector consists of; one is the width of all.
    pub fn sets(&self) -> &[usize] {
        &self.sets
    }

    /// Returns the factor by which each set of unit length is multiplied, so that a vector of all has unit length.
    pub fn set_scale(&self) -> f32 {
        libm::sqrt(1.0 / self.sets.len() as f64) as f32
    }

    /// Returns the projection without its directions: it only centres vectors and scales them.
    #[must_use]
    pub fn unrotated(&self) -> Self {
        Self {
            mean: self.mean.clone(),
            rotation: Vec::new(),
            dimensions: self.width(),
            sets: self.sets.clone(),
        }
    }

    /// Returns the mean of the features.
    pub fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// Returns the directions that are kept, one after the other; empty if all dimensions are kept as they are.
    pub fn rotation(&self) -> &[f32] {
        &self.rotation
    }

    /// Returns whether a vector of features is too long for [`apply`](Self::apply).
    pub fn is_too_long(&self, features: &[f32]) -> bool {
        self.add_unit(features, &mut Vec::with_capacity(features.len())).is_err()
    }

    /// Returns the number of features of a vector before the projection.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// Returns the length of a vector after the projection.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Projects feature vectors. The result of a row does not depend on the other rows.
    ///
    /// # Errors
    /// If the rows have another number of features, or one is too long.
    pub fn apply(&self, features: Matrix<'_>) -> Result<Vec<f32>, HeadError> {
        let width = self.width();
        if features.width() != width {
            let got = features.width();
            return Err(HeadError::Input(format!("rows of {got} features, but the projection has {width}")));
        }
        let mut unit = Vec::with_capacity(features.data().len());
        for (row, vector) in features.iter().enumerate() {
            self.add_unit(vector, &mut unit).map_err(|TooLong| {
                let problem =
                    "its vector is longer than the largest 32-bit number; divide the vectors by a number";
                HeadError::Input(format!("row {row}: {problem}"))
            })?;
        }
        if self.rotation.is_empty() {
            return Ok(unit);
        }
        let mut rotated = vec![0.0; features.rows() * self.dimensions];
        let rotation = Operand::new(&self.rotation, self.dimensions, width);
        multiply(Operand::new(&unit, features.rows(), width), rotation.transposed(), 0.0, &mut rotated);
        Ok(rotated)
    }

    /// Centres a row, scales each of its sets to the same length and the row to unit length, and appends it.
    fn add_unit(&self, row: &[f32], into: &mut Vec<f32>) -> Result<(), TooLong> {
        let mut start = into.len();
        into.extend(row.iter().zip(&self.mean).map(|(number, mean)| number - mean));
        let scale = self.set_scale();
        for set in &self.sets {
            let numbers = &mut into[start..start + set];
            if !scale_to_unit_length(numbers).is_finite() {
                return Err(TooLong);
            }
            if self.sets.len() > 1 {
                for number in &mut *numbers {
                    *number *= scale;
                }
            }
            start += set;
        }
        Ok(())
    }
}

/// A vector whose length exceeds `f32`: dividing by it would turn all its numbers into zero.
struct TooLong;

/// Divides a vector by its length, and returns the length.
pub(crate) fn scale_to_unit_length(vector: &mut [f32]) -> f32 {
    let squares = calmix_core::lanes::sum(vector, |number| f64::from(number) * f64::from(number));
    let length = (libm::sqrt(squares) as f32).max(MIN_LENGTH);
    for number in vector {
        *number /= length;
    }
    length
}

/// Computes `Σ uᵀu` over the centred vectors of unit length: blocks of rows in f32, their sum in f64.
fn moments(vectors: Matrix<'_>, centred: &Projection, stop: &AtomicBool) -> Result<Vec<f64>, HeadError> {
    let width = centred.width();
    let mut sum = vec![0.0_f64; width * width];
    let mut product = vec![0.0_f32; width * width];
    let mut block = Vec::with_capacity(BLOCK * width);
    let mut rows = vectors.iter().peekable();
    while rows.peek().is_some() {
        check_stop(stop)?;
        block.clear();
        for row in rows.by_ref().take(BLOCK) {
            centred.add_unit(row, &mut block).map_err(|TooLong| {
                HeadError::Input("a vector is longer than the largest 32-bit number".to_owned())
            })?;
        }
        let unit = Operand::new(&block, block.len() / width, width);
        multiply(unit.transposed(), unit, 0.0, &mut product);
        sum.iter_mut().zip(&product).for_each(|(sum, &number)| *sum += f64::from(number));
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use calmix_core::rng::{Domain, Seed};

    use super::*;

    /// Points on a line, and a little beside it: one direction holds almost all.
    fn line() -> Vec<f32> {
        let point = |n: usize| {
            let t = n as f32 / 25.0 - 4.0;
            let off = if n.is_multiple_of(2) { 0.05 } else { -0.05 };
            [1.0 + 2.0 * t, 1.0 - 2.0 * t + off, 1.0 + t]
        };
        (0..200).flat_map(point).collect()
    }

    #[test]
    fn the_first_direction_is_that_of_the_data() {
        let line = line();
        let rows = Matrix::new(&line, 200, 3).unwrap();
        let projection = Projection::fit(rows, 1).unwrap();
        let projected = projection.apply(rows).unwrap();
        assert!(projected[..90].iter().all(|x| (0.95..=1.0001).contains(&x.abs())), "{projected:?}");
        // The largest number of the direction is positive: 2/3 of its length.
        assert!(projected[199] > 0.0);
    }

    #[test]
    fn all_dimensions_are_kept_as_they_are() {
        let projection =
            Projection::fit(Matrix::new(&[1.0, 0.0, 0.0, -1.0, 0.0, 0.0], 2, 3).unwrap(), 0).unwrap();
        let projected =
            projection.apply(Matrix::new(&[3.0, 4.0, 0.0, 0.0, 0.0, 0.0], 2, 3).unwrap()).unwrap();
        assert!((projected[0] - 0.6).abs() < 1e-6 && (projected[1] - 0.8).abs() < 1e-6, "{projected:?}");
        assert_eq!(projected[3..], [0.0; 3]);
    }

    #[test]
    fn sets_have_the_same_length_whatever_their_units() {
        let mut stream = Seed(5).stream(Domain::Init, 0, 0);
        let rows: Vec<f32> = (0..60 * 7).map(|_| stream.normal() as f32).collect();
        // The first set in other units.
        let scaled: Vec<f32> =
            rows.iter().enumerate().map(|(n, x)| if n % 7 < 3 { 1000.0 * x + 4.0 } else { *x }).collect();
        let stop = AtomicBool::new(false);
        let projected = |rows: &[f32], dimensions: usize| {
            let rows = Matrix::new(rows, 60, 7).unwrap();
            let projection = Projection::fit_unless(rows, &[3, 4], dimensions, &stop).unwrap();
            projection.apply(rows).unwrap()
        };
        for dimensions in [0, 4] {
            let pairs = projected(&rows, dimensions).into_iter().zip(projected(&scaled, dimensions));
            pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
        }
        for row in projected(&rows, 0).chunks_exact(7) {
            let [first, second] = [&row[..3], &row[3..]].map(|set| set.iter().map(|x| x * x).sum::<f32>());
            assert!((first - 0.5).abs() < 1e-5 && (second - 0.5).abs() < 1e-5, "{first} {second}");
        }
        let projection = Projection::new(vec![0.0; 7], Vec::new()).unwrap();
        for wrong in [&[3, 3][..], &[0, 7], &[usize::MAX, 8]] {
            assert!(projection.clone().with_sets(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(projection.with_sets(&[7]).unwrap(), Projection::new(vec![0.0; 7], Vec::new()).unwrap());
    }

    #[test]
    fn vectors_that_are_too_long_are_refused() {
        let fitted = [1.0, 0.0, 0.0, -1.0, 0.0, 0.0];
        for dimensions in [0, 1] {
            let projection = Projection::fit(Matrix::new(&fitted, 2, 3).unwrap(), dimensions).unwrap();
            let huge = [1.0, 0.0, 0.0, f32::MAX, f32::MIN, 0.0];
            let error = projection.apply(Matrix::new(&huge, 2, 3).unwrap()).unwrap_err();
            assert!(error.to_string().starts_with("row 1: its vector is longer"), "{error}");
            assert!(projection.is_too_long(&huge[3..]) && !projection.is_too_long(&huge[..3]));
            // Long, but a number of its own.
            let long = [3e38, 0.0, 0.0];
            let unit = projection.apply(Matrix::new(&long, 1, 3).unwrap()).unwrap();
            assert!((unit[0].abs() - 1.0).abs() < 1e-6, "{unit:?}");
        }
        let all_huge = [f32::MAX, f32::MIN, f32::MIN, f32::MAX];
        assert!(Projection::fit(Matrix::new(&all_huge, 2, 2).unwrap(), 1).is_err());
    }

    #[test]
    fn directions_are_orthonormal_and_hold_the_most() {
        let width = 40;
        let mut stream = Seed(3).stream(Domain::Init, 0, 0);
        // The spread of dimension d falls with d.
        let rows: Vec<f32> =
            (0..500 * width).map(|n| (stream.normal() / (1.0 + (n % width) as f64)) as f32).collect();
        let rows = Matrix::new(&rows, 500, width).unwrap();
        let kept = 5;
        let projection = Projection::fit(rows, kept).unwrap();
        let directions: Vec<&[f32]> = projection.rotation().chunks_exact(width).collect();
        for (i, a) in directions.iter().enumerate() {
            for (j, b) in directions.iter().enumerate() {
                let dot: f32 = a.iter().zip(*b).map(|(a, b)| a * b).sum();
                assert!((dot - f32::from(u8::from(i == j))).abs() < 1e-5, "{i} {j} {dot}");
            }
        }
        let projected = projection.apply(rows).unwrap();
        let spread =
            |dimension: usize| -> f32 { projected.iter().skip(dimension).step_by(kept).map(|x| x * x).sum() };
        let spreads: Vec<f32> = (0..kept).map(spread).collect();
        assert!(spreads.is_sorted_by(|a, b| a >= b), "{spreads:?}");
        // As much as any choice of five axes of the data.
        let unit = Projection::fit(rows, 0).unwrap().apply(rows).unwrap();
        let axes: f32 =
            unit.chunks_exact(width).map(|row| row[..kept].iter().map(|x| x * x).sum::<f32>()).sum();
        assert!(spreads.iter().sum::<f32>() >= axes * 0.9999);
    }
}
