//! Semi-supervised linear discriminant analysis by EM: a Gaussian for each class, one covariance for all.
//!
//! A labelled row belongs to its class, an unlabelled one to each class by its probability. The E-step computes these
//! probabilities; the M-step computes means, covariance and class shares from them. The quotient of two such Gaussians is linear
//! in the vector, so the result is a linear head. The weight of a labelled row multiplies its part in all sums, as that many rows would;
//! the number of dimensions follows the number of labels, and no weight makes it more.
//!
//! Rows are read in ascending order, in blocks of 256: the result depends neither on threads nor on the order in which a caller
//! names the rows.

mod sinkhorn;

use std::ops::{Range, RangeInclusive};

use calmix_core::matrix::cholesky::Cholesky;

use crate::error::HeadError;
use crate::loss::log_sum_exp;
use crate::network::{Head, HeadShape, by_weight};
use crate::product::{Operand, multiply};
use crate::progress::FitProgress;
use crate::samples::{HeadSamples, TrainingRows};

/// The range of the number of dimensions modelled, which is the number of labels clamped to it: the covariance of more dimensions
/// has too many parameters for few labels, and more labels gain from more dimensions. This range, and the weights and the factor
/// below, were chosen on CIFAR-10 with features of EfficientNet-Lite0.
const DIMENSIONS: RangeInclusive<usize> = 64..=256;
/// The weight of the shrinkage target in the covariance: a diagonal with the mean variance everywhere.
const SHRINKAGE: f64 = 0.3;
/// The smallest mean variance, relative to the mean square of the vectors: a single label per class has no variance at all.
const MIN_VARIANCE: f64 = 1e-3;
const ITERATIONS: usize = 10;
/// EM ends when the mean log-likelihood changes by less than this share of itself.
const TOLERANCE: f64 = 1e-4;
/// Divides the logits. The dimensions of vectors are not independent given the class, so the mixture is too confident: by about
/// this factor on features of image classifiers. The E-step does not divide: with 10 labels per class of CIFAR-10 and
/// Fashion-MNIST, dividing by two there changed the NLL by at most 0.004, and dividing by five raised it by 0.07 to 0.64.
const OVERCONFIDENCE: f64 = 5.0;
/// The distance of the logit of a class without labels below the mean of the others.
const BELOW_OTHERS: f64 = 10.0;
/// The number of rows whose products are added in f32 before they go into a sum of f64.
const BLOCK: usize = 256;
/// The maximum number of probabilities in memory, 128 MiB. Of more rows, every n-th is read.
pub const MAX_PROBABILITIES: u64 = 1 << 25;

/// The influence of the rows without labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianMixture {
    /// The total weight of the unlabelled rows relative to that of the labelled rows.
    pub unlabelled_weight: f64,
    /// Whether the unlabelled rows are assumed to be spread over the classes as the labels are. The priors are then the class
    /// shares of the labels, otherwise those of the probabilities.
    pub is_balanced: bool,
}

impl GaussianMixture {
    /// Class shares are estimated by EM.
    pub const PLAIN: Self = Self { unlabelled_weight: 2.0, is_balanced: false };
    /// Class shares are those of the labels: better if the labels are spread as the samples are, worse if they are not.
    pub const BALANCED: Self = Self { unlabelled_weight: 4.0, is_balanced: true };
}

/// Fits the mixture; the result is a linear head.
///
/// # Errors
/// If a number is not finite, or the fit has to stop.
pub fn gaussian_mixture(
    samples: HeadSamples<'_>,
    rows: &TrainingRows,
    settings: GaussianMixture,
    progress: &FitProgress<'_>,
) -> Result<Head, HeadError> {
    let data = MixtureData::new(samples, rows, settings, progress)?;
    let mut mixture = data.maximise(&data.labelled, 0.0)?;
    let mut previous = None;
    for _ in 0..ITERATIONS {
        if data.unlabelled.is_empty() {
            break;
        }
        let (sums, likelihood) = data.expect(&mixture)?;
        mixture = data.maximise(&sums, data.weight)?;
        let change = previous.map(|previous: f64| (likelihood - previous).abs());
        if change.is_some_and(|change| change < TOLERANCE * likelihood.abs()) {
            break;
        }
        previous = Some(likelihood);
    }
    mixture.head(&data, samples)
}

/// The number of rows of each class and the sums of their vectors, weighted.
#[derive(Debug, Clone)]
struct ClassSums {
    counts: Vec<f64>,
    vectors: Vec<f64>,
}

/// The rows, and sums over them that do not change between iterations.
struct MixtureData<'a> {
    samples: HeadSamples<'a>,
    progress: &'a FitProgress<'a>,
    settings: GaussianMixture,
    dimensions: usize,
    /// The classes with labels; a class without one cannot be found.
    present: Vec<usize>,
    /// The rows without labels, ascending.
    unlabelled: Vec<usize>,
    /// The weight of each unlabelled row.
    weight: f64,
    labelled_rows: Vec<usize>,
    /// The weight of all labelled rows.
    labelled_weight: f64,
    /// For each labelled row, the index of its class in `present`.
    labels: Vec<usize>,
    labelled: ClassSums,
    shares: Vec<f64>,
    /// `Σ xᵀx` of the labelled and of the unlabelled rows. The probabilities of a row add up to one, so the sum does not change
    /// between iterations.
    moments: [Vec<f64>; 2],
}

/// A mixture: its logits are `weight·x + bias`, up to a term that all classes share.
struct Mixture {
    weight: Vec<f64>,
    bias: Vec<f64>,
    /// The mean over the rows of the term that all classes share.
    shared: f64,
}

impl<'a> MixtureData<'a> {
    fn new(
        samples: HeadSamples<'a>,
        rows: &TrainingRows,
        settings: GaussianMixture,
        progress: &'a FitProgress<'a>,
    ) -> Result<Self, HeadError> {
        progress.check_stop()?;
        let dimensions =
            rows.labelled.len().clamp(*DIMENSIONS.start(), *DIMENSIONS.end()).min(samples.width());
        let mut labelled_rows = rows.labelled.clone();
        labelled_rows.sort_unstable();
        let class_of = |row: usize| samples.label(row).unwrap_or_default() as usize;
        let mut present: Vec<usize> = labelled_rows.iter().map(|&row| class_of(row)).collect();
        present.sort_unstable();
        present.dedup();
        let position = |&row: &usize| present.binary_search(&class_of(row)).unwrap_or_default();
        let labels: Vec<usize> = labelled_rows.iter().map(position).collect();
        let mut unlabelled: Vec<usize> = rows.unlabelled.clone();
        unlabelled.sort_unstable();
        // A row that counts with its label does not count without it.
        unlabelled.retain(|row| labelled_rows.binary_search(row).is_err());
        let stride = (unlabelled.len() * present.len()).div_ceil(MAX_PROBABILITIES as usize).max(1);
        let unlabelled: Vec<usize> = unlabelled.into_iter().step_by(stride).collect();
        let count: f64 = labelled_rows.iter().map(|&row| samples.weight(row)).sum();
        let weight = settings.unlabelled_weight * count / unlabelled.len().max(1) as f64;
        let mut labelled = ClassSums::new(present.len(), dimensions);
        let vectors = samples.first_dimensions(&labelled_rows, dimensions)?;
        for ((vector, &class), &row) in vectors.chunks_exact(dimensions).zip(&labels).zip(&labelled_rows) {
            let weight = samples.weight(row);
            labelled.counts[class] += weight;
            let sums = &mut labelled.vectors[class * dimensions..(class + 1) * dimensions];
            sums.iter_mut().zip(vector).for_each(|(sum, &number)| *sum += weight * f64::from(number));
        }
        let shares = labelled.counts.iter().map(|labels| labels / count).collect();
        let is_weighted = !samples.weights.is_empty();
        let of_labelled = moments(&samples, &labelled_rows, is_weighted, dimensions, progress)?;
        let of_unlabelled = moments(&samples, &unlabelled, false, dimensions, progress)?;
        let moments = [of_labelled, of_unlabelled];
        Ok(Self {
            samples,
            progress,
            settings,
            dimensions,
            present,
            unlabelled,
            weight,
            labelled_rows,
            labelled_weight: count,
            labels,
            labelled,
            shares,
            moments,
        })
    }

    /// Computes the E-step: the sums over all rows by their probabilities under a mixture, and the mean log-likelihood of the
    /// rows.
    fn expect(&self, mixture: &Mixture) -> Result<(ClassSums, f64), HeadError> {
        let classes = self.present.len();
        let head = mixture.small_head(self.dimensions)?;
        let mut likelihood = 0.0;
        let labelled = logits(&head, &self.samples, &self.labelled_rows, self.dimensions)?;
        let labels = self.labels.iter().zip(&self.labelled_rows);
        for (logits, (&class, &row)) in labelled.chunks_exact(classes).zip(labels) {
            likelihood += self.samples.weight(row) * f64::from(logits[class]);
        }
        let mut probabilities = vec![0.0_f32; self.unlabelled.len() * classes];
        for (rows, probabilities) in
            self.unlabelled.chunks(BLOCK).zip(probabilities.chunks_mut(BLOCK * classes))
        {
            self.progress.check_stop()?;
            let logits = logits(&head, &self.samples, rows, self.dimensions)?;
            for (row, p) in logits.chunks_exact(classes).zip(probabilities.chunks_exact_mut(classes)) {
                likelihood += self.weight * log_sum_exp(row, p);
            }
        }
        if self.settings.is_balanced {
            sinkhorn::balance(&mut probabilities, &self.shares, self.progress)?;
        }
        let mut sums = self.labelled.clone();
        let mut products = vec![0.0_f32; classes * self.dimensions];
        for (rows, probabilities) in self.unlabelled.chunks(BLOCK).zip(probabilities.chunks(BLOCK * classes))
        {
            self.progress.check_stop()?;
            let block = self.samples.first_dimensions(rows, self.dimensions)?;
            by_weight(probabilities, &block, classes, &mut products);
            let added = sums.vectors.iter_mut().zip(&products);
            added.for_each(|(sum, &number)| *sum += self.weight * f64::from(number));
            for row in probabilities.chunks_exact(classes) {
                let added = sums.counts.iter_mut().zip(row);
                added.for_each(|(count, &p)| *count += self.weight * f64::from(p));
            }
        }
        let all = self.labelled_weight + self.weight * self.unlabelled.len() as f64;
        Ok((sums, likelihood / all + mixture.shared))
    }

    /// Computes the M-step: fits the mixture to the sums, with a shrunk covariance.
    fn maximise(&self, sums: &ClassSums, weight: f64) -> Result<Mixture, HeadError> {
        let dimensions = self.dimensions;
        let all = self.labelled_weight + weight * self.unlabelled.len() as f64;
        let [labelled, unlabelled] = &self.moments;
        let moments: Vec<f64> =
            labelled.iter().zip(unlabelled).map(|(a, b)| (a + weight * b) / all).collect();
        let mut means = sums.vectors.clone();
        // The covariance within classes: all second moments minus those of the class means.
        let mut covariance = moments.clone();
        for (mean, &count) in means.chunks_exact_mut(dimensions).zip(&sums.counts) {
            self.progress.check_stop()?;
            // A balanced class may have lost all its unlabelled rows; the labels always count, so its sum is not zero.
            for number in mean.iter_mut() {
                *number /= count;
            }
            for (row, &a) in covariance.chunks_exact_mut(dimensions).zip(&*mean) {
                row.iter_mut().zip(&*mean).for_each(|(number, b)| *number -= count / all * a * b);
            }
        }
        let diagonal = |matrix: &[f64]| -> f64 {
            matrix.iter().step_by(dimensions + 1).sum::<f64>() / dimensions as f64
        };
        let min_variance = MIN_VARIANCE * diagonal(&moments) + 1e-30;
        let variance = diagonal(&covariance).max(min_variance);
        // Shrink towards a diagonal with the mean variance, so that few labels give an invertible matrix.
        for number in &mut covariance {
            *number *= 1.0 - SHRINKAGE;
        }
        covariance.iter_mut().step_by(dimensions + 1).for_each(|number| *number += SHRINKAGE * variance);
        let broken = || HeadError::Input("the covariance of the vectors is not a finite number".to_owned());
        let factors = Cholesky::new(&covariance, dimensions).ok_or_else(broken)?;

        let mut weights = Vec::with_capacity(means.len());
        for mean in means.chunks_exact(dimensions) {
            self.progress.check_stop()?;
            weights.extend(factors.solve(mean));
        }
        let shares = if self.settings.is_balanced {
            self.shares.clone()
        } else {
            sums.counts.iter().map(|count| count / all).collect()
        };
        let each = weights.chunks_exact(dimensions).zip(means.chunks_exact(dimensions)).zip(shares);
        let bias = each.map(|((weight, mean), share)| {
            let square: f64 = weight.iter().zip(mean).map(|(a, b)| a * b).sum();
            libm::log(share) - 0.5 * square
        });
        let bias = bias.collect();
        // The trace of covariance⁻¹·moments; a column of the symmetric moments is a row.
        let rows = moments.chunks_exact(dimensions).enumerate();
        let trace: f64 = rows.map(|(n, row)| factors.solve(row)[n]).sum();
        let shared =
            -0.5 * (trace + factors.log_determinant() + dimensions as f64 * libm::log(std::f64::consts::TAU));
        Ok(Mixture { weight: weights, bias, shared })
    }
}

impl ClassSums {
    fn new(classes: usize, dimensions: usize) -> Self {
        Self { counts: vec![0.0; classes], vectors: vec![0.0; classes * dimensions] }
    }
}

impl Mixture {
    /// Returns a head on the modelled dimensions and the classes with labels.
    fn small_head(&self, dimensions: usize) -> Result<Head, HeadError> {
        let shape = HeadShape { width: dimensions, hidden: None, classes: self.bias.len() };
        let numbers = self.weight.iter().chain(&self.bias);
        Head::new(shape, numbers.map(|&number| number as f32).collect())
    }

    /// Returns the head on all dimensions and classes.
    fn head(&self, data: &MixtureData<'_>, samples: HeadSamples<'_>) -> Result<Head, HeadError> {
        let shape = HeadShape { width: samples.width(), hidden: None, classes: samples.classes.len() };
        let dimensions = data.dimensions;
        let count = self.bias.len().max(1) as f64;
        // The mean logit is never above the logarithm of the mean of exponentials: a class without a label stays unlikely
        // wherever the vector is.
        let mut mean = vec![0.0; dimensions];
        for weight in self.weight.chunks_exact(dimensions) {
            mean.iter_mut().zip(weight).for_each(|(mean, number)| *mean += number / count);
        }
        let mean_bias = self.bias.iter().sum::<f64>() / count;
        let mut numbers = vec![0.0_f32; shape.numbers()];
        let (weights, biases) = numbers.split_at_mut(shape.width * shape.classes);
        for (class, bias) in biases.iter_mut().enumerate() {
            let position = data.present.binary_search(&class).ok();
            let place = |n: usize| -> Range<usize> { n * dimensions..(n + 1) * dimensions };
            let weight = position.map_or(&mean[..], |n| &self.weight[place(n)]);
            let start = class * shape.width;
            for (into, number) in weights[start..start + dimensions].iter_mut().zip(weight) {
                *into = (number / OVERCONFIDENCE) as f32;
            }
            let logit_bias =
                position.map_or(mean_bias / OVERCONFIDENCE - BELOW_OTHERS, |n| self.bias[n] / OVERCONFIDENCE);
            *bias = logit_bias as f32;
        }
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(HeadError::Input("a weight of the mixture is not a finite number".to_owned()));
        }
        Head::new(shape, numbers)
    }
}

fn logits(
    head: &Head,
    samples: &HeadSamples<'_>,
    rows: &[usize],
    dimensions: usize,
) -> Result<Vec<f32>, HeadError> {
    Ok(head.forward(&samples.first_dimensions(rows, dimensions)?)?.logits)
}

/// Computes `Σ weight·xᵀx` over some rows: blocks of rows in f32, their sum in f64.
fn moments(
    samples: &HeadSamples<'_>,
    rows: &[usize],
    is_weighted: bool,
    dimensions: usize,
    progress: &FitProgress<'_>,
) -> Result<Vec<f64>, HeadError> {
    let mut sum = vec![0.0_f64; dimensions * dimensions];
    let mut product = vec![0.0_f32; dimensions * dimensions];
    for rows in rows.chunks(BLOCK) {
        progress.check_stop()?;
        let block = samples.first_dimensions(rows, dimensions)?;
        let vectors = Operand::new(&block, rows.len(), dimensions);
        if is_weighted {
            let mut weighted = block.clone();
            for (vector, &row) in weighted.chunks_exact_mut(dimensions).zip(rows) {
                let weight = samples.weight(row) as f32;
                for number in vector {
                    *number *= weight;
                }
            }
            let weighted = Operand::new(&weighted, rows.len(), dimensions);
            multiply(weighted.transposed(), vectors, 0.0, &mut product);
        } else {
            multiply(vectors.transposed(), vectors, 0.0, &mut product);
        }
        sum.iter_mut().zip(&product).for_each(|(sum, &number)| *sum += f64::from(number));
    }
    Ok(sum)
}
