//! Systems of equations with a symmetric, positive definite matrix, in f64.

/// The lower triangle L of a matrix `L·Lᵀ`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cholesky {
    lower: Vec<f64>,
    width: usize,
}

impl Cholesky {
    /// Factorises a matrix of `width` rows; `None` if it is not positive definite.
    pub fn new(matrix: &[f64], width: usize) -> Option<Self> {
        let mut lower = vec![0.0; width * width];
        for i in 0..width {
            for j in 0..=i {
                let products: f64 = (0..j).map(|k| lower[i * width + k] * lower[j * width + k]).sum();
                let rest = matrix[i * width + j] - products;
                if i == j {
                    // Not `rest <= 0.0`: NaN is not positive either.
                    if !(rest > 0.0 && rest.is_finite()) {
                        return None;
                    }
                    lower[i * width + i] = libm::sqrt(rest);
                } else {
                    lower[i * width + j] = rest / lower[j * width + j];
                }
            }
        }
        Some(Self { lower, width })
    }

    /// Solves `L·Lᵀ·x = right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let Self { lower, width } = self;
        let mut x = right.to_vec();
        self.solve_lower(&mut x);
        for i in (0..*width).rev() {
            let solved: f64 = (i + 1..*width).map(|k| lower[k * width + i] * x[k]).sum();
            x[i] = (x[i] - solved) / lower[i * width + i];
        }
        x
    }

    /// Solves `L·x = right` in place. If the matrix is a covariance, `x` has the covariance 1.
    pub fn solve_lower(&self, right: &mut [f64]) {
        let Self { lower, width } = self;
        for i in 0..*width {
            let solved: f64 = lower[i * width..i * width + i].iter().zip(&*right).map(|(l, x)| l * x).sum();
            right[i] = (right[i] - solved) / lower[i * width + i];
        }
    }

    /// Returns the logarithm of the determinant of the matrix.
    pub fn log_determinant(&self) -> f64 {
        (0..self.width).map(|i| 2.0 * libm::log(self.lower[i * self.width + i])).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cholesky_solves_and_refuses() {
        let matrix = [4.0, 2.0, 0.6, 2.0, 5.0, 1.0, 0.6, 1.0, 3.0];
        let factors = Cholesky::new(&matrix, 3).expect("positive definite");
        let x = factors.solve(&[1.0, -2.0, 0.5]);
        for (row, expected) in matrix.chunks_exact(3).zip([1.0, -2.0, 0.5]) {
            let product: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
            assert!((product - expected).abs() < 1e-12);
        }
        let determinant: f64 = 4.0 * (15.0 - 1.0) - 2.0 * (6.0 - 0.6) + 0.6 * (2.0 - 3.0);
        assert!((factors.log_determinant() - determinant.ln()).abs() < 1e-12);
        assert!(Cholesky::new(&[1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::new(&[f64::NAN], 1).is_none());
    }
}
