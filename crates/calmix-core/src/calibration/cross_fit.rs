//! Cross-fitted temperature: what temperature scaling is worth when there are too few labels to spare any.
//!
//! With a few dozen labelled samples there is no second held-out set on which to see whether a fitted
//! temperature helps. Cross-fitting gives an honest answer from one set: every sample is measured at a
//! temperature fitted without it. The temperature to use is then the one fitted on all samples, as is usual
//! after cross-validation, if the held-out NLL says that fitting helps.
//!
//! The logits must come from networks that were not trained on these labels: one network and a held-out set,
//! or one network per fold, whose held-out logits are put together first. It does not protect a set on which
//! the network makes no mistake at all: every fold then agrees on the coldest temperature, and
//! [`Temperature::is_at_bound`] says so.

use serde::{Deserialize, Serialize};

use super::temperature::{Temperature, fit_rows, nll_sum, pairs};
use super::{CalibrationError, checked};
use crate::matrix::Matrix;
use crate::rng::{Domain, Seed};

/// A temperature with the evidence for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossFit {
    /// How many samples there were.
    pub n: usize,
    /// The temperature fitted without the samples of each fold.
    pub folds: Vec<Temperature>,
    /// The fold of each sample.
    pub fold_of: Vec<u32>,
    /// The temperature fitted on all samples.
    pub combined: Temperature,
    /// Mean NLL with every sample at the temperature that was fitted without it.
    pub held_out_nll: f64,
    /// Mean NLL at T = 1.
    pub uncalibrated_nll: f64,
}

impl CrossFit {
    /// Splits the rows into `folds` folds, whose sizes differ by at most one, and fits without each.
    ///
    /// The folds are a function of the seed and the number of rows alone.
    ///
    /// # Errors
    /// If a fold would be empty or the only one, or for the reasons of [`Temperature::fit`].
    pub fn fit(logits: Matrix, labels: &[u32], folds: usize, seed: Seed) -> Result<Self, CalibrationError> {
        checked::logits(logits, labels)?;
        let n = labels.len();
        if folds < 2 || folds > n {
            return Err(CalibrationError::Folds { folds, samples: n });
        }
        let fold_of = deal(n, folds, seed);
        let all = pairs(logits, labels);
        let mut temperatures = Vec::with_capacity(folds);
        let mut held_out_sum = 0.0;
        for fold in 0..folds as u32 {
            let samples = |held_out: bool| {
                let in_part = move |&(_, &of): &(_, &u32)| (of == fold) == held_out;
                all.clone().zip(&fold_of).filter(in_part).map(|(sample, _)| sample)
            };
            let temperature = fit_rows(samples(false));
            held_out_sum += nll_sum(samples(true), temperature);
            temperatures.push(temperature);
        }
        Ok(Self {
            n,
            folds: temperatures,
            combined: fit_rows(all.clone()),
            held_out_nll: held_out_sum / n as f64,
            uncalibrated_nll: nll_sum(all, Temperature::IDENTITY) / n as f64,
            fold_of,
        })
    }

    /// Whether fitting improved the NLL of samples that it had not seen.
    pub fn helps(&self) -> bool {
        self.held_out_nll < self.uncalibrated_nll
    }

    /// The combined temperature if fitting helps, otherwise T = 1.
    pub fn advised(&self) -> Temperature {
        if self.helps() { self.combined } else { Temperature::IDENTITY }
    }
}

/// Assigns shuffled samples to folds in turn.
fn deal(n: usize, folds: usize, seed: Seed) -> Vec<u32> {
    let mut order: Vec<usize> = (0..n).collect();
    seed.stream(Domain::Fold, 0, 0).shuffle(&mut order);
    let mut fold_of = vec![0; n];
    for (place, sample) in order.into_iter().enumerate() {
        fold_of[sample] = (place % folds) as u32;
    }
    fold_of
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Margins of `margin`, every `period`-th of them wrong.
    fn table(n: usize, margin: f32, period: usize) -> (Vec<f32>, Vec<u32>) {
        let logits = (0..n).flat_map(|_| [margin, 0.0]).collect();
        (logits, (0..n).map(|i| u32::from(i % period == 0)).collect())
    }

    #[test]
    fn each_fold_is_fitted_without_itself() {
        let (logits, labels) = table(40, 6.0, 4);
        let fit = CrossFit::fit(Matrix::new(&logits, 40, 2).unwrap(), &labels, 5, Seed(3)).unwrap();
        for (fold, temperature) in fit.folds.iter().enumerate() {
            let kept: Vec<usize> = (0..40).filter(|&i| fit.fold_of[i] as usize != fold).collect();
            assert_eq!(kept.len(), 32);
            let wrong = kept.iter().filter(|&&i| labels[i] == 1).count() as f64;
            let expected = 6.0 / ((32.0 - wrong) / wrong).ln();
            assert!((temperature.value() / expected - 1.0).abs() < 1e-13);
        }
        assert!((fit.combined.value() / (6.0 / 3.0_f64.ln()) - 1.0).abs() < 1e-13);
        assert!(fit.helps() && fit.advised() == fit.combined && fit.n == 40);
    }

    #[test]
    fn noise_is_not_advised() {
        // Calibrated already (a quarter wrong at a margin of ln 3): what a fold fits is noise, and costs.
        let (logits, labels) = table(12, 3.0_f32.ln(), 4);
        let fit = CrossFit::fit(Matrix::new(&logits, 12, 2).unwrap(), &labels, 5, Seed(1)).unwrap();
        assert!(!fit.helps());
        assert_eq!(fit.advised(), Temperature::IDENTITY);
    }

    #[test]
    fn folds_need_samples() {
        let (logits, labels) = table(3, 1.0, 2);
        let logits = Matrix::new(&logits, 3, 2).unwrap();
        for folds in [0, 1, 4, usize::MAX] {
            assert!(CrossFit::fit(logits, &labels, folds, Seed(0)).is_err());
        }
        assert_eq!(CrossFit::fit(logits, &labels, 3, Seed(0)).unwrap().folds.len(), 3);
    }
}
