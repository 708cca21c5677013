//! Multinomial logistic regression on the labels alone, as scikit-learn's: `C·Σ weight·loss + ½‖W‖²`, biases free.
//!
//! It is convex and needs no step size, which makes it the baseline that a method with unlabelled samples has to beat.
//!
//! Three things keep it fast. Each component is scaled by about its second derivative, which is known up to the confidence of the
//! head: vectors in their principal directions then take a tenth of the iterations. A fit ends when its next step would gain next
//! to nothing, instead of at a small gradient: with many classes all gradients are small. And a fit starts where the last two
//! point to: weights grow about as the logarithm of C. Products are computed in f32, sums of them in f64.

use calmix_core::lanes;
use calmix_core::softmax::exp_of_negative;
use calmix_metrics::lbfgs::Search;

use crate::error::HeadError;
use crate::network::{Head, HeadShape};
use crate::product::{Operand, multiply};
use crate::progress::FitProgress;
use crate::samples::{HeadSamples, TrainingRows};

/// The values of C that are tried, for vectors of unit length.
pub const STRENGTHS: [f64; 6] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

/// The gain of a step below which a fit ends, in nats per label. On other samples, half this gain changed the NLL by less than
/// 3e-3.
pub const MIN_GAIN: f64 = 2e-6;

/// Rows whose products are computed at once, and added in f32.
const BLOCK: usize = 1_024;
/// The largest gradient of the mean loss at the end of a fit.
const GRADIENT_TOLERANCE: f64 = 1e-9;
/// The noise of the mean loss, whose products are in f32.
const NOISE: f64 = 1e-6;
const MAX_ITERATIONS: usize = 500;
/// The smallest mean of p·(1 − p): for a class without a label, it tends to zero as its bias falls.
const MIN_CURVATURE: f64 = 1e-9;

/// Fits a linear head for each C, ascending. A fit ends when a step would gain no more than `min_gain` nats per label,
/// usually [`MIN_GAIN`].
///
/// # Errors
/// If a number is not finite, or the fit has to stop.
pub fn logistic_regression(
    samples: HeadSamples<'_>,
    rows: &TrainingRows,
    strengths: &[f64],
    min_gain: f64,
    progress: &FitProgress<'_>,
) -> Result<Vec<Head>, HeadError> {
    let shape = HeadShape { width: samples.width(), hidden: None, classes: samples.classes.len() };
    let mut problem = Problem::new(samples, rows, shape)?;
    let mut path = Path::new(shape.numbers());
    let mut heads = Vec::with_capacity(strengths.len());
    for &strength in strengths {
        problem.penalty = 1.0 / (strength * problem.total);
        let curvature = problem.curvature();
        let search = Search {
            tolerance: GRADIENT_TOLERANCE,
            min_gain,
            noise: NOISE,
            max_iterations: MAX_ITERATIONS,
            curvature: &curvature,
        };
        let minimum = search.minimise(path.next_start(strength), |point, gradient| {
            problem.mean_loss(point, gradient, progress)
        })?;
        let numbers = problem.numbers(&minimum.point);
        path.add(strength, minimum.point);
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(HeadError::Input(format!(
                "logistic regression with C = {strength} has no finite solution: scale the vectors to unit length"
            )));
        }
        heads.push(Head::new(shape, numbers)?);
    }
    Ok(heads)
}

/// The last two solutions.
struct Path {
    last: Vec<f64>,
    before: Option<Vec<f64>>,
    /// The values of C solved so far.
    strengths: Vec<f64>,
}

impl Path {
    fn new(numbers: usize) -> Self {
        Self { last: vec![0.0; numbers], before: None, strengths: Vec::new() }
    }

    fn add(&mut self, strength: f64, solution: Vec<f64>) {
        let last = std::mem::replace(&mut self.last, solution);
        // The zero start of the first fit is not a solution.
        self.before = (!self.strengths.is_empty()).then_some(last);
        self.strengths.push(strength);
    }

    /// Extrapolates the solution of the next C, on a straight line in ln C.
    fn next_start(&self, strength: f64) -> Vec<f64> {
        let mut start = self.last.clone();
        if let (Some(before), [.., first, second]) = (&self.before, &self.strengths[..]) {
            let along = libm::log(strength / second) / libm::log(second / first);
            let along = if along.is_finite() { along.clamp(0.0, 1.5) } else { 0.0 };
            start.iter_mut().zip(before).for_each(|(number, before)| *number += along * (*number - before));
        }
        start
    }
}

/// The objective divided by C and the weight of all labels, so that it has the scale of a mean loss for any C.
struct Problem {
    /// The labelled vectors minus their mean. The biases are not penalised, so this only shifts them.
    vectors: Vec<f32>,
    mean: Vec<f64>,
    /// The mean square of each dimension.
    squares: Vec<f64>,
    labels: Vec<usize>,
    /// The weight of each label; empty if all are 1.
    row_weights: Vec<f32>,
    /// The sum of these weights.
    total: f64,
    shape: HeadShape,
    penalty: f64,
    /// The mean of p·(1 − p) of each class at the last point.
    uncertainty: Vec<f64>,
    weights: Vec<f32>,
    /// The logits of a block, later replaced by the gradient.
    logits: Vec<f32>,
    sums: BlockSums,
    product: Vec<f32>,
}

impl Problem {
    fn new(samples: HeadSamples<'_>, rows: &TrainingRows, shape: HeadShape) -> Result<Self, HeadError> {
        let mut vectors = samples.unaugmented(&rows.labelled)?;
        let label = |&row: &usize| samples.label(row).unwrap_or_default() as usize;
        let labels: Vec<usize> = rows.labelled.iter().map(label).collect();
        let row_weights: Vec<f32> = if samples.weights.is_empty() {
            Vec::new()
        } else {
            rows.labelled.iter().map(|&row| samples.weight(row) as f32).collect()
        };
        let weight = |row: usize| row_weights.get(row).map_or(1.0, |&weight| f64::from(weight));
        let total = if row_weights.is_empty() {
            labels.len().max(1) as f64
        } else {
            (0..labels.len()).map(weight).sum::<f64>()
        };
        let width = shape.width.max(1);
        let mut mean = vec![0.0; width];
        for (row, vector) in vectors.chunks_exact(width).enumerate() {
            let weight = weight(row);
            mean.iter_mut()
                .zip(vector)
                .for_each(|(mean, &number)| *mean += weight * f64::from(number) / total);
        }
        let mut squares = vec![0.0; width];
        for (row, vector) in vectors.chunks_exact_mut(width).enumerate() {
            let weight = weight(row);
            for ((number, mean), square) in vector.iter_mut().zip(&mean).zip(&mut squares) {
                *number = (f64::from(*number) - mean) as f32;
                *square += weight * (f64::from(*number) * f64::from(*number)) / total;
            }
        }
        let equal = 1.0 / shape.classes.max(1) as f64;
        Ok(Self {
            vectors,
            mean,
            squares,
            labels,
            row_weights,
            total,
            shape,
            penalty: 0.0,
            uncertainty: vec![equal * (1.0 - equal); shape.classes],
            weights: Vec::new(),
            logits: Vec::new(),
            sums: BlockSums::default(),
            product: vec![0.0; shape.width * shape.classes],
        })
    }

    /// Approximates the second derivative of the objective by each number, at the last point.
    fn curvature(&self) -> Vec<f64> {
        let mut curvature = Vec::with_capacity(self.shape.numbers());
        for uncertainty in &self.uncertainty {
            let of_class = |square: &f64| uncertainty.max(MIN_CURVATURE) * square + self.penalty;
            curvature.extend(self.squares.iter().map(of_class));
        }
        curvature.extend(self.uncertainty.iter().map(|uncertainty| uncertainty.max(MIN_CURVATURE)));
        curvature
    }

    /// Computes the objective at a point, matrix then biases, and its gradient.
    fn mean_loss(
        &mut self,
        point: &[f64],
        gradient: &mut [f64],
        progress: &FitProgress<'_>,
    ) -> Result<f64, HeadError> {
        let HeadShape { width, classes, .. } = self.shape;
        let share = 1.0 / self.total;
        self.weights.clear();
        self.weights.extend(point.iter().map(|&number| number as f32));
        let (weight, bias) = self.weights.split_at(width * classes);
        gradient.fill(0.0);
        let (by_weights, by_bias) = gradient.split_at_mut(width * classes);
        self.uncertainty.fill(0.0);
        let mut loss = 0.0;
        let blocks = self.vectors.chunks((BLOCK * width).max(1)).zip(self.labels.chunks(BLOCK));
        for (n, (vectors, labels)) in blocks.enumerate() {
            // An iteration over many rows and classes takes minutes.
            progress.check_stop()?;
            self.logits.resize(labels.len() * classes, 0.0);
            logits(vectors, weight, bias, &mut self.logits);
            let row_weights = self.row_weights.chunks(BLOCK).nth(n).unwrap_or_default();
            loss += self.sums.slopes(&mut self.logits, labels, row_weights);
            add(&self.sums.uncertainty, &mut self.uncertainty);
            add(&self.sums.slopes, by_bias);
            by_weight(&self.logits, vectors, classes, &mut self.product);
            add(&self.product, by_weights);
        }
        for uncertainty in &mut self.uncertainty {
            *uncertainty *= share;
        }
        for by in by_bias {
            *by *= share;
        }
        let mut squares = 0.0;
        for (by, w) in by_weights.iter_mut().zip(point) {
            *by = share * *by + self.penalty * w;
            squares += w * w;
        }
        Ok(share * loss + 0.5 * self.penalty * squares)
    }

    /// Returns the parameters of the head at a point, for vectors whose mean was not subtracted.
    fn numbers(&self, point: &[f64]) -> Vec<f32> {
        let HeadShape { width, classes, .. } = self.shape;
        let (weight, bias) = point.split_at(width * classes);
        let mut numbers: Vec<f32> = weight.iter().map(|&number| number as f32).collect();
        for (weight, bias) in weight.chunks_exact(width.max(1)).zip(bias) {
            let moved: f64 = weight.iter().zip(&self.mean).map(|(weight, mean)| weight * mean).sum();
            numbers.push((bias - moved) as f32);
        }
        numbers
    }
}

/// The number of classes up to which packing the factors of a product takes longer than multiplying them.
const MAX_UNPACKED_CLASSES: usize = 32;

/// Computes the logits of a block, class after class, so that rows are computed side by side in vector units, however few classes
/// there are.
fn logits(vectors: &[f32], weight: &[f32], bias: &[f32], into: &mut [f32]) {
    let classes = bias.len().max(1);
    let rows = into.len() / classes;
    let width = weight.len() / classes;
    if classes <= MAX_UNPACKED_CLASSES {
        for (row, vector) in vectors.chunks_exact(width.max(1)).enumerate() {
            for (class, (weight, bias)) in weight.chunks_exact(width.max(1)).zip(bias).enumerate() {
                into[class * rows + row] = lanes::dot(vector, weight) + bias;
            }
        }
        return;
    }
    for (of_class, bias) in into.chunks_exact_mut(rows.max(1)).zip(bias) {
        of_class.fill(*bias);
    }
    let vectors = Operand::new(vectors, rows, width);
    multiply(Operand::new(weight, classes, width), vectors.transposed(), 1.0, into);
}

/// Computes the gradient with respect to the weights from the gradient with respect to the logits.
fn by_weight(by_logits: &[f32], vectors: &[f32], classes: usize, into: &mut [f32]) {
    /// The number of rows that are added at once, so that a sum is read and written less often.
    const ROWS: usize = 4;
    let rows = by_logits.len() / classes.max(1);
    let width = into.len() / classes.max(1);
    if classes > MAX_UNPACKED_CLASSES {
        let by_logits = Operand::new(by_logits, classes, rows);
        multiply(by_logits, Operand::new(vectors, rows, width), 0.0, into);
        return;
    }
    into.fill(0.0);
    for (n, vectors) in vectors.chunks(ROWS * width.max(1)).enumerate() {
        for (class, into) in into.chunks_exact_mut(width.max(1)).enumerate() {
            let start = class * rows + n * ROWS;
            if vectors.len() == ROWS * width {
                let [a, b, c, d] = [0, 1, 2, 3].map(|row| &vectors[row * width..(row + 1) * width]);
                let by = &by_logits[start..start + ROWS];
                for ((((into, a), b), c), d) in into.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    *into += (by[0] * a + by[1] * b) + (by[2] * c + by[3] * d);
                }
            } else {
                for (vector, by) in vectors.chunks_exact(width.max(1)).zip(&by_logits[start..]) {
                    into.iter_mut().zip(vector).for_each(|(into, number)| *into += by * number);
                }
            }
        }
    }
}

/// Sums per class over the rows of a block, and buffers for them.
#[derive(Default)]
struct BlockSums {
    /// p·(1 − p).
    uncertainty: Vec<f32>,
    /// The gradients with respect to the logits.
    slopes: Vec<f32>,
    /// The largest logit of each row.
    tops: Vec<f32>,
    /// The sum of the exponentials of each row.
    masses: Vec<f32>,
}

impl BlockSums {
    /// Replaces logits, class after class, by the gradient of the summed cross-entropy with respect to them; returns the
    /// cross-entropy. `weights` has a weight for each row, or none if all are 1.
    fn slopes(&mut self, logits: &mut [f32], labels: &[usize], weights: &[f32]) -> f64 {
        let Self { uncertainty, slopes, tops, masses } = self;
        let rows = labels.len().max(1);
        uncertainty.clear();
        slopes.clear();
        tops.clear();
        tops.resize(rows, f32::NEG_INFINITY);
        masses.clear();
        masses.resize(rows, 0.0);
        for of_class in logits.chunks_exact(rows) {
            for (top, &z) in tops.iter_mut().zip(of_class) {
                *top = if z > *top { z } else { *top };
            }
        }
        let weight = |row: usize| weights.get(row).map_or(1.0, |&weight| f64::from(weight));
        let mut loss = 0.0;
        for (row, (&label, &top)) in labels.iter().zip(&*tops).enumerate() {
            let label_logit = logits.get(label * rows + row).copied().unwrap_or(top);
            loss += weight(row) * (f64::from(top) - f64::from(label_logit));
        }
        for of_class in logits.chunks_exact_mut(rows) {
            for ((z, top), mass) in of_class.iter_mut().zip(&*tops).zip(&mut *masses) {
                *z = exp_of_negative(*z - top);
                *mass += *z;
            }
        }
        for (row, mass) in masses.iter_mut().enumerate() {
            loss += weight(row) * libm::log(f64::from(*mass));
            *mass = 1.0 / *mass;
        }
        for of_class in logits.chunks_exact_mut(rows) {
            of_class.iter_mut().zip(&*masses).for_each(|(p, scale)| *p *= scale);
            if weights.is_empty() {
                uncertainty.push(lanes::sum(of_class, |p| f64::from(p * (1.0 - p))) as f32);
            } else {
                let weighted = of_class.iter().zip(weights).map(|(p, weight)| weight * p * (1.0 - p));
                uncertainty.push(weighted.map(f64::from).sum::<f64>() as f32);
            }
        }
        for (row, &label) in labels.iter().enumerate() {
            if let Some(p) = logits.get_mut(label * rows + row) {
                *p -= 1.0;
            }
        }
        if !weights.is_empty() {
            for of_class in logits.chunks_exact_mut(rows) {
                of_class.iter_mut().zip(weights).for_each(|(slope, weight)| *slope *= weight);
            }
        }
        slopes.extend(logits.chunks_exact(rows).map(|of_class| lanes::sum(of_class, f64::from) as f32));
        loss
    }
}

fn add(numbers: &[f32], to: &mut [f64]) {
    to.iter_mut().zip(numbers).for_each(|(to, &number)| *to += f64::from(number));
}
