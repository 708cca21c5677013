//! Evidence that the mean of batches has moved, which may be looked at after every batch.
//!
//! The mean of each batch is compared with that of the reference and all earlier batches together. While rows are exchangeable and
//! Gaussian, these differences are independent (Helmert's contrasts), and so are their T² if the covariance learns from each difference
//! after it was tested: a fixed reference would repeat its own error in every batch. How far rows are from Gaussian is measured on the
//! reference (`MeanTest`).
//!
//! A gambler bets on small p-values: κ·p^(κ−1) pays 1 on average (Vovk and Wang, "E-values: calibration, combination and
//! applications", 2021). One batch with p = 10⁻⁸ can therefore raise the alarm, and so can many with p = 0.1.
//!
//! Differences are taken outside the span of the class means, as for the verdict, so another mix of classes is not a change.

use super::capital::{BETS, Capital, RATES};
use super::mean_test::{MeanTest, remove_span};
use super::sums::{BatchSums, ONE};

/// The smallest number of rows whose mean is compared. Smaller batches wait until they have as many together.
pub const MIN_BATCH_ROWS: u64 = 50;

/// The exponents κ of the bets; lower ones pay more for tiny p-values, and rely more on the far tail of T².
const EXPONENTS: [f64; BETS - 1] = [0.3, 0.5, 0.7, 0.9];

/// The shares of capital that move to other bets with every batch.
const MOVED: [f64; RATES] = [1e-3, 1e-2, 1e-1];

/// The smallest p-value that is bet on, so that the capital is finite.
const MIN_P_VALUE: f64 = 1e-200;

/// A test martingale on the means of batches.
#[derive(Debug, Clone, PartialEq)]
pub struct MeansMartingale {
    test: MeanTest,
    class_span: Vec<Vec<f64>>,
    /// The inverse of the sum of squares and products of the reference and of all differences, and its degrees of freedom.
    inverse: Vec<f64>,
    degrees: f64,
    /// The sum of the coordinates of all rows that were compared, those of the reference included, and their number.
    sum: Vec<f64>,
    rows: f64,
    /// The same of rows that wait.
    waiting: Vec<f64>,
    waiting_rows: f64,
    capital: Capital,
}

impl MeansMartingale {
    /// Starts with a reference of `samples` whose coordinates have mean 0 and covariance 1.
    pub(super) fn new(test: MeanTest, class_span: Vec<Vec<f64>>, width: usize, samples: usize) -> Self {
        let degrees = samples as f64 - 1.0;
        let mut inverse = vec![0.0; width * width];
        inverse.iter_mut().step_by(width + 1).for_each(|diagonal| *diagonal = 1.0 / degrees);
        Self {
            test,
            class_span,
            inverse,
            degrees,
            sum: vec![0.0; width],
            rows: samples as f64,
            waiting: vec![0.0; width],
            waiting_rows: 0.0,
            capital: Capital::new(),
        }
    }

    /// Bets on a batch, together with the rows that wait.
    pub(super) fn update(&mut self, sums: &BatchSums) {
        self.waiting
            .iter_mut()
            .zip(&sums.coordinates)
            .for_each(|(waiting, &sum)| *waiting += sum as f64 / ONE);
        self.waiting_rows += sums.rows as f64;
        if self.waiting_rows < MIN_BATCH_ROWS as f64 {
            return;
        }
        let p_value = self.compare();
        let mut factors = [1.0; BETS];
        for (factor, exponent) in factors[1..].iter_mut().zip(EXPONENTS) {
            *factor = exponent * libm::pow(p_value.max(MIN_P_VALUE), exponent - 1.0);
        }
        self.capital.bet(MOVED, factors);
    }

    /// Returns the natural logarithm of the capital now; zero at the start.
    pub fn ln_capital(&self) -> f64 {
        self.capital.ln()
    }

    /// Returns the natural logarithm of the highest capital so far.
    pub fn ln_highest(&self) -> f64 {
        self.capital.ln_highest()
    }

    /// Computes the p-value of the mean of the waiting rows, and adds them to all others.
    fn compare(&mut self) -> f64 {
        let width = self.sum.len();
        remove_span(&mut self.waiting, &self.class_span);
        let (rows, earlier) = (self.waiting_rows, self.rows);
        let deviation = libm::sqrt(1.0 / rows + 1.0 / earlier);
        let means = self.waiting.iter().zip(&self.sum);
        let difference: Vec<f64> =
            means.map(|(of_batch, sum)| (of_batch / rows - sum / earlier) / deviation).collect();
        let solved: Vec<f64> =
            self.inverse.chunks_exact(width).map(|row| product(row, &difference)).collect();
        let length = product(&solved, &difference);
        let p_value = self.test.p_value(length * self.degrees, self.degrees, [rows, earlier]);
        // The formula of Sherman and Morrison: the covariance has then seen this difference.
        for (row, a) in self.inverse.chunks_exact_mut(width).zip(&solved) {
            row.iter_mut().zip(&solved).for_each(|(entry, b)| *entry -= a * b / (1.0 + length));
        }
        self.degrees += 1.0;
        self.sum.iter_mut().zip(&mut self.waiting).for_each(|(sum, waiting)| *sum += std::mem::take(waiting));
        self.rows += std::mem::take(&mut self.waiting_rows);
        p_value
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
impl MeansMartingale {
    /// Returns a martingale that takes rows for Gaussian.
    pub(super) fn as_if_gaussian(&self) -> Self {
        Self { test: self.test.of_gaussian(), ..self.clone() }
    }
}
