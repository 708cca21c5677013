//! Ridge regression on the similarity to landmarks: the hidden layer of a head, and the weights above it.

use calmix_core::matrix::cholesky::Cholesky;
use calmix_core::rng::{Domain, Seed};

use crate::error::HeadError;
use crate::network::{Head, HeadShape, affine, by_weight};
use crate::parallel;
use crate::product::{Operand, multiply};
use crate::progress::FitProgress;

/// The number of landmarks, which are samples: a thousand were no better on Fashion-MNIST, CIFAR-10 and digits.
const MAX_LANDMARKS: usize = 512;
/// The share of pairs of landmarks whose similarity is below the threshold of a unit, whose output is then zero. With 0, heads are
/// nearly linear, and worse than the graph on digits; with 0.9, they are worse than the graph on CIFAR-10 and Fashion-MNIST.
const BELOW_THRESHOLD: f64 = 0.65;
/// The penalty of squared weights, relative to the mean variance of a unit's output times the number of samples.
const RIDGE: f64 = 0.03;
/// The number of rows whose products are added in f32 before they go into a sum of f64.
const BLOCK: usize = 256;

/// The outputs of a hidden layer for all samples, and what a regression on them needs.
#[derive(Debug, PartialEq)]
pub(super) struct Landmarks {
    /// The vectors of the landmarks, one after the other: the weights of the layer.
    vectors: Vec<f32>,
    width: usize,
    threshold: f32,
    /// A row of outputs for each sample.
    outputs: Vec<f32>,
    /// The mean output of each unit.
    mean: Vec<f64>,
    factors: Cholesky,
}

/// The outputs for a block of samples, and the sums of their products.
type Outputs = (Vec<f32>, Vec<f32>);

impl Landmarks {
    /// Draws landmarks from the vectors of samples, which is one draw for all folds.
    pub(super) fn new(
        vectors: &[f32],
        ids: &[u64],
        seed: Seed,
        threads: usize,
        progress: &FitProgress<'_>,
    ) -> Result<Self, HeadError> {
        let rows = ids.len();
        let width = vectors.len() / rows.max(1);
        let mut drawn: Vec<usize> = (0..rows).collect();
        drawn.sort_by_cached_key(|&row| seed.stream(Domain::Landmark, 0, ids[row]).next_u64());
        drawn.truncate(MAX_LANDMARKS);
        drawn.sort_unstable();
        let mut landmarks = Vec::with_capacity(drawn.len() * width);
        for &row in &drawn {
            landmarks.extend_from_slice(&vectors[row * width..(row + 1) * width]);
        }
        let threshold = threshold(&landmarks, width);
        let biases = vec![-threshold; drawn.len()];
        let blocks = parallel::run(rows.div_ceil(BLOCK), threads, |block| {
            progress.check_stop()?;
            let end = rows.min((block + 1) * BLOCK);
            let mut outputs = affine(&vectors[block * BLOCK * width..end * width], &landmarks, &biases);
            for number in &mut outputs {
                *number = number.max(0.0);
            }
            let units = drawn.len();
            let mut products = vec![0.0; units * units];
            let operand = Operand::new(&outputs, end - block * BLOCK, units);
            multiply(operand.transposed(), operand, 0.0, &mut products);
            Ok((outputs, products))
        });
        Self::of_blocks(blocks, landmarks, threshold, width)
    }

    fn of_blocks(
        blocks: Vec<Result<Outputs, HeadError>>,
        landmarks: Vec<f32>,
        threshold: f32,
        width: usize,
    ) -> Result<Self, HeadError> {
        let units = landmarks.len() / width;
        let mut outputs = Vec::new();
        let mut moments = vec![0.0_f64; units * units];
        for block in blocks {
            let (of_block, products) = block?;
            outputs.extend(of_block);
            moments.iter_mut().zip(products).for_each(|(sum, number)| *sum += f64::from(number));
        }
        let rows = (outputs.len() / units) as f64;
        let mut mean = vec![0.0; units];
        for row in outputs.chunks_exact(units) {
            mean.iter_mut().zip(row).for_each(|(mean, &number)| *mean += f64::from(number) / rows);
        }
        for (line, a) in moments.chunks_exact_mut(units).zip(&mean) {
            line.iter_mut().zip(&mean).for_each(|(number, b)| *number -= rows * a * b);
        }
        let variance = moments.iter().step_by(units + 1).sum::<f64>() / units as f64;
        // Of samples that are all alike, any weights do.
        let penalty = if variance > 0.0 { RIDGE * variance } else { 1.0 };
        moments.iter_mut().step_by(units + 1).for_each(|number| *number += penalty);
        let broken = || HeadError::Input("the similarity of two vectors is not a finite number".to_owned());
        let factors = Cholesky::new(&moments, units).ok_or_else(broken)?;
        Ok(Self { vectors: landmarks, width, threshold, outputs, mean, factors })
    }

    /// Returns the number of units.
    pub(super) fn units(&self) -> usize {
        self.mean.len()
    }

    /// Fits weights, class by class, and biases to targets: a row of classes for each sample.
    pub(super) fn fit(
        &self,
        targets: &[f32],
        classes: usize,
        progress: &FitProgress<'_>,
    ) -> Result<(Vec<f64>, Vec<f64>), HeadError> {
        let units = self.units();
        let rows = (targets.len() / classes) as f64;
        let mut means = vec![0.0_f64; classes];
        let mut products = vec![0.0_f64; classes * units];
        let mut of_block = vec![0.0_f32; classes * units];
        for (targets, outputs) in targets.chunks(BLOCK * classes).zip(self.outputs.chunks(BLOCK * units)) {
            progress.check_stop()?;
            by_weight(targets, outputs, classes, &mut of_block);
            products.iter_mut().zip(&of_block).for_each(|(sum, &number)| *sum += f64::from(number));
            for row in targets.chunks_exact(classes) {
                means.iter_mut().zip(row).for_each(|(mean, &number)| *mean += f64::from(number) / rows);
            }
        }
        let mut weights = Vec::with_capacity(classes * units);
        let mut biases = Vec::with_capacity(classes);
        for (products, target) in products.chunks_exact_mut(units).zip(&means) {
            products.iter_mut().zip(&self.mean).for_each(|(number, mean)| *number -= rows * mean * target);
            let solved = self.factors.solve(products);
            biases.push(
                target - solved.iter().zip(&self.mean).map(|(weight, mean)| weight * mean).sum::<f64>(),
            );
            weights.extend(solved);
        }
        Ok((weights, biases))
    }

    /// Returns the head with these weights and biases above the layer.
    pub(super) fn head(&self, weights: &[f32], biases: &[f32]) -> Result<Head, HeadError> {
        let shape = HeadShape { width: self.width, hidden: Some(self.units()), classes: biases.len() };
        let thresholds = vec![-self.threshold; self.units()];
        let numbers = [&self.vectors[..], weights, &thresholds, biases].concat();
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(HeadError::Input(
                "a weight of a head on neighbours is not a finite number".to_owned(),
            ));
        }
        Head::new(shape, numbers)
    }
}

/// Returns the similarity that the configured share of pairs of landmarks is below.
fn threshold(landmarks: &[f32], width: usize) -> f32 {
    let units = landmarks.len() / width.max(1);
    let mut products = vec![0.0; units * units];
    let operand = Operand::new(landmarks, units, width);
    multiply(operand, operand.transposed(), 0.0, &mut products);
    let mut pairs: Vec<f32> =
        (1..units).flat_map(|row| products[row * units..row * units + row].to_vec()).collect();
    pairs.sort_by(f32::total_cmp);
    pairs.get((BELOW_THRESHOLD * pairs.len() as f64) as usize).copied().unwrap_or_default()
}
