//! Whitening: coordinates in which the samples of a reference have mean 0 and covariance 1.

use calmix_core::matrix::cholesky::Cholesky;

/// The variance that is added in every direction, relative to the mean variance. Directions in which the reference hardly varies
/// would otherwise turn rounding errors into distances.
const RIDGE: f64 = 1e-3;

/// The mean of a reference and the triangle of its covariance.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Whitening {
    mean: Vec<f64>,
    triangle: Cholesky,
}

impl Whitening {
    /// Fits the coordinates to rows of `width` numbers; `None` if there are fewer than two rows, or they do not vary at all.
    pub(super) fn fit(rows: &[f32], width: usize) -> Option<Self> {
        let n = rows.len() / width.max(1);
        if n < 2 {
            return None;
        }
        let mut mean = vec![0.0; width];
        for row in rows.chunks_exact(width) {
            mean.iter_mut().zip(row).for_each(|(sum, &number)| *sum += f64::from(number));
        }
        for sum in &mut mean {
            *sum /= n as f64;
        }
        let mut covariance = vec![0.0; width * width];
        let mut centred = vec![0.0; width];
        for row in rows.chunks_exact(width) {
            for ((centred, &number), mean) in centred.iter_mut().zip(row).zip(&mean) {
                *centred = f64::from(number) - mean;
            }
            for (i, a) in centred.iter().enumerate() {
                let line = &mut covariance[i * width..=i * width + i];
                line.iter_mut().zip(&centred).for_each(|(sum, b)| *sum += a * b);
            }
        }
        for sum in &mut covariance {
            *sum /= (n - 1) as f64;
        }
        let trace: f64 = (0..width).map(|i| covariance[i * width + i]).sum();
        for i in 0..width {
            covariance[i * width + i] += RIDGE * trace / width as f64;
        }
        Some(Self { mean, triangle: Cholesky::new(&covariance, width)? })
    }

    /// Turns features into whitened coordinates.
    pub(super) fn apply(&self, features: &mut [f64]) {
        features.iter_mut().zip(&self.mean).for_each(|(number, mean)| *number -= mean);
        self.triangle.solve_lower(features);
    }
}

/// Returns orthonormal vectors that span some rows, the longest remainder first: at most `max` of them, and none in directions
/// that the rows hardly have.
pub(super) fn span(rows: &[Vec<f64>], max: usize) -> Vec<Vec<f64>> {
    /// The smallest length of a remainder, relative to the longest row.
    const MIN_LENGTH: f64 = 1e-3;
    let mut left = rows.to_vec();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let length = |row: &[f64]| libm::sqrt(row.iter().map(|x| x * x).sum());
    let longest = left.iter().map(|row| length(row)).fold(0.0, f64::max);
    while basis.len() < max {
        let lengths = left.iter().map(|row| length(row)).enumerate();
        let next = lengths.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some((next, next_length)) = next.filter(|&(_, length)| length > MIN_LENGTH * longest) else {
            break;
        };
        let direction: Vec<f64> = left.swap_remove(next).iter().map(|x| x / next_length).collect();
        for row in &mut left {
            let product: f64 = row.iter().zip(&direction).map(|(x, d)| x * d).sum();
            row.iter_mut().zip(&direction).for_each(|(x, d)| *x -= product * d);
        }
        basis.push(direction);
    }
    basis
}
