//! Multinomial logistic regression on the labels alone, as scikit-learn's: `C·Σ loss + ½‖W‖²`, biases free.
//!
//! Convex and without a step size, so it is what a method has to beat that uses the samples without labels.

use calmix_metrics::lbfgs::try_minimise;

use crate::error::HeadError;
use crate::network::{Head, HeadShape};
use crate::product::{Operand, multiply};
use crate::progress::FitProgress;
use crate::samples::{HeadSamples, TrainingRows};

/// The values of C that are tried, for vectors of unit length.
pub const STRENGTHS: [f64; 6] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

/// Rows whose products are computed at once: what is kept in f64 stays small, however many labels there are.
const BLOCK: usize = 256;
/// Of the mean loss.
const GRADIENT_TOLERANCE: f64 = 1e-7;
const MAX_ITERATIONS: usize = 500;

/// Fits a linear head for each C, ascending; each starts at the solution of the one before.
///
/// # Errors
/// If a number is not finite, or the fit has to stop.
pub fn logistic_regression(
    samples: HeadSamples<'_>,
    rows: &TrainingRows,
    strengths: &[f64],
    progress: &FitProgress<'_>,
) -> Result<Vec<Head>, HeadError> {
    let shape = HeadShape { width: samples.width(), hidden: None, classes: samples.classes.len() };
    let mut problem = Problem::new(samples, rows, shape)?;
    let mut point = vec![0.0; shape.numbers()];
    let mut heads = Vec::with_capacity(strengths.len());
    for &strength in strengths {
        problem.penalty = 1.0 / (strength * rows.labelled.len().max(1) as f64);
        let minimum = try_minimise(point, GRADIENT_TOLERANCE, MAX_ITERATIONS, |point, gradient| {
            problem.mean_loss(point, gradient, progress)
        })?;
        point = minimum.point;
        let numbers: Vec<f32> = point.iter().map(|&number| number as f32).collect();
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(HeadError::Input(format!(
                "logistic regression with C = {strength} has no finite solution: scale the vectors to unit length"
            )));
        }
        heads.push(Head::new(shape, numbers)?);
    }
    Ok(heads)
}

/// The objective, divided by C and the number of labels: its scale is that of a mean loss, whatever C is.
struct Problem {
    /// Those of the labelled rows, one after the other.
    vectors: Vec<f32>,
    labels: Vec<usize>,
    shape: HeadShape,
    penalty: f64,
    /// A block of vectors in f64, and their logits.
    block: Vec<f64>,
    logits: Vec<f64>,
}

impl Problem {
    fn new(samples: HeadSamples<'_>, rows: &TrainingRows, shape: HeadShape) -> Result<Self, HeadError> {
        let vectors = samples.clean(&rows.labelled)?;
        let label = |&row: &usize| samples.label(row).unwrap_or_default() as usize;
        let labels = rows.labelled.iter().map(label).collect();
        Ok(Self { vectors, labels, shape, penalty: 0.0, block: Vec::new(), logits: Vec::new() })
    }

    /// The value at a point, matrix then biases, and its gradient.
    fn mean_loss(
        &mut self,
        point: &[f64],
        gradient: &mut [f64],
        progress: &FitProgress<'_>,
    ) -> Result<f64, HeadError> {
        let HeadShape { width, classes, .. } = self.shape;
        let share = 1.0 / self.labels.len().max(1) as f64;
        let (weight, bias) = point.split_at(width * classes);
        let (by_weight, by_bias) = gradient.split_at_mut(width * classes);
        let squares: f64 = weight.iter().map(|w| w * w).sum();
        by_weight.iter_mut().zip(weight).for_each(|(by, w)| *by = self.penalty * w);
        by_bias.fill(0.0);
        let weight = Operand::new(weight, classes, width).transposed();
        let mut loss = 0.0;
        for (vectors, labels) in self.vectors.chunks((BLOCK * width).max(1)).zip(self.labels.chunks(BLOCK)) {
            // An iteration over many rows and classes takes minutes.
            progress.check_stop()?;
            self.block.clear();
            self.block.extend(vectors.iter().map(|&number| f64::from(number)));
            self.logits.clear();
            self.logits.resize(labels.len() * classes, 0.0);
            let block = Operand::new(&self.block, labels.len(), width);
            multiply(block, weight, 0.0, &mut self.logits);
            for (logits, &label) in self.logits.chunks_exact_mut(classes).zip(labels) {
                logits.iter_mut().zip(bias).for_each(|(z, bias)| *z += bias);
                loss += share * slopes(logits, label, share);
                by_bias.iter_mut().zip(&*logits).for_each(|(by, slope)| *by += slope);
            }
            let by_logits = Operand::new(&self.logits, labels.len(), classes);
            multiply(by_logits.transposed(), block, 1.0, by_weight);
        }
        Ok(loss + 0.5 * self.penalty * squares)
    }
}

/// Returns the cross entropy of a row, and replaces its logits by `share` times their gradient.
fn slopes(logits: &mut [f64], label: usize, share: f64) -> f64 {
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let own = logits.get(label).map_or(0.0, |z| z - top);
    let mut sum = 0.0;
    for z in logits.iter_mut() {
        *z = libm::exp(*z - top);
        sum += *z;
    }
    for p in logits.iter_mut() {
        *p *= share / sum;
    }
    if let Some(by) = logits.get_mut(label) {
        *by -= share;
    }
    libm::log(sum) - own
}
