//! Multinomial logistic regression on the labels alone, as scikit-learn's: `C·Σ loss + ½‖W‖²`, biases free.
//!
//! Convex and without a step size, so it is what a method has to beat that uses the samples without labels.
//!
//! Three things keep it fast. Each component is scaled by about its second derivative, which is known up to the confidence of
//! the head: vectors in their principal directions then take a tenth of the iterations. A fit ends when its next step
//! would gain next to nothing, instead of at a small gradient: with many classes all gradients are small. And a fit starts
//! where the last two point to: weights grow about as the logarithm of C. Products are computed in f32, sums of them in f64.

use calmix_core::lanes;
use calmix_core::softmax::exp_of_negative;
use calmix_metrics::lbfgs::Search;

use crate::error::HeadError;
use crate::network::{Head, HeadShape, affine_into, by_weight};
use crate::progress::FitProgress;
use crate::samples::{HeadSamples, TrainingRows};

/// The values of C that are tried, for vectors of unit length.
pub const STRENGTHS: [f64; 6] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

/// The gain of a step below which a fit ends, in nats per label. The NLL of other samples is then within about 3e-4 of that of
/// the exact solution, and may be on either side of it.
pub const LEAST_GAIN: f64 = 1e-6;

/// Rows whose products are computed at once, and added in f32.
const BLOCK: usize = 1_024;
/// Of the mean loss: a problem without a label of its own class is solved at once.
const GRADIENT_TOLERANCE: f64 = 1e-9;
/// Of the mean loss, from products in f32.
const NOISE: f64 = 1e-6;
const MAX_ITERATIONS: usize = 500;
/// The least share of p·(1 − p): a class without a label has none, however far its bias falls.
const LEAST_CURVATURE: f64 = 1e-9;

/// Fits a linear head for each C, ascending. A fit ends when a step would gain no more than `least_gain` nats per label,
/// usually [`LEAST_GAIN`].
///
/// # Errors
/// If a number is not finite, or the fit has to stop.
pub fn logistic_regression(
    samples: HeadSamples<'_>,
    rows: &TrainingRows,
    strengths: &[f64],
    least_gain: f64,
    progress: &FitProgress<'_>,
) -> Result<Vec<Head>, HeadError> {
    let shape = HeadShape { width: samples.width(), hidden: None, classes: samples.classes.len() };
    let mut problem = Problem::new(samples, rows, shape)?;
    let mut path = Path::new(shape.numbers());
    let mut heads = Vec::with_capacity(strengths.len());
    for &strength in strengths {
        problem.penalty = 1.0 / (strength * rows.labelled.len().max(1) as f64);
        let curvature = problem.curvature();
        let search = Search {
            tolerance: GRADIENT_TOLERANCE,
            least_gain,
            noise: NOISE,
            max_iterations: MAX_ITERATIONS,
            curvature: &curvature,
        };
        let minimum = search.try_minimise(path.next_start(strength), |point, gradient| {
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
    /// Their C.
    strengths: Vec<f64>,
}

impl Path {
    fn new(numbers: usize) -> Self {
        Self { last: vec![0.0; numbers], before: None, strengths: Vec::new() }
    }

    fn add(&mut self, strength: f64, solution: Vec<f64>) {
        let last = std::mem::replace(&mut self.last, solution);
        // Zero is where the first one started, not a solution.
        self.before = (!self.strengths.is_empty()).then_some(last);
        self.strengths.push(strength);
    }

    /// Where the solution of the next C is expected, on a straight line in ln C.
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

/// The objective, divided by C and the number of labels: its scale is that of a mean loss, whatever C is.
struct Problem {
    /// Those of the labelled rows minus their mean, one after the other. The biases are free, so this only moves them.
    vectors: Vec<f32>,
    mean: Vec<f64>,
    /// The mean square of each dimension.
    squares: Vec<f64>,
    labels: Vec<usize>,
    shape: HeadShape,
    penalty: f64,
    /// The mean of p·(1 − p) of each class at the last point.
    uncertainty: Vec<f64>,
    weights: Vec<f32>,
    /// Those of a block, and then the gradient by them.
    logits: Vec<f32>,
    sums: BlockSums,
    product: Vec<f32>,
}

impl Problem {
    fn new(samples: HeadSamples<'_>, rows: &TrainingRows, shape: HeadShape) -> Result<Self, HeadError> {
        let mut vectors = samples.clean(&rows.labelled)?;
        let label = |&row: &usize| samples.label(row).unwrap_or_default() as usize;
        let labels: Vec<usize> = rows.labelled.iter().map(label).collect();
        let count = labels.len().max(1) as f64;
        let width = shape.width.max(1);
        let mut mean = vec![0.0; width];
        for vector in vectors.chunks_exact(width) {
            mean.iter_mut().zip(vector).for_each(|(mean, &number)| *mean += f64::from(number) / count);
        }
        let mut squares = vec![0.0; width];
        for vector in vectors.chunks_exact_mut(width) {
            for ((number, mean), square) in vector.iter_mut().zip(&mean).zip(&mut squares) {
                *number = (f64::from(*number) - mean) as f32;
                *square += f64::from(*number) * f64::from(*number) / count;
            }
        }
        let equal = 1.0 / shape.classes.max(1) as f64;
        Ok(Self {
            vectors,
            mean,
            squares,
            labels,
            shape,
            penalty: 0.0,
            uncertainty: vec![equal * (1.0 - equal); shape.classes],
            weights: Vec::new(),
            logits: Vec::new(),
            sums: BlockSums { uncertainty: vec![0.0; shape.classes], slopes: vec![0.0; shape.classes] },
            product: vec![0.0; shape.width * shape.classes],
        })
    }

    /// About the second derivative of the objective by each number, at the last point.
    fn curvature(&self) -> Vec<f64> {
        let mut curvature = Vec::with_capacity(self.shape.numbers());
        for uncertainty in &self.uncertainty {
            let of_class = |square: &f64| uncertainty.max(LEAST_CURVATURE) * square + self.penalty;
            curvature.extend(self.squares.iter().map(of_class));
        }
        curvature.extend(self.uncertainty.iter().map(|uncertainty| uncertainty.max(LEAST_CURVATURE)));
        curvature
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
        self.weights.clear();
        self.weights.extend(point.iter().map(|&number| number as f32));
        let (weight, bias) = self.weights.split_at(width * classes);
        gradient.fill(0.0);
        let (by_weights, by_bias) = gradient.split_at_mut(width * classes);
        self.uncertainty.fill(0.0);
        let mut loss = 0.0;
        for (vectors, labels) in self.vectors.chunks((BLOCK * width).max(1)).zip(self.labels.chunks(BLOCK)) {
            // An iteration over many rows and classes takes minutes.
            progress.check_stop()?;
            affine_into(vectors, weight, bias, &mut self.logits);
            loss += self.sums.slopes(&mut self.logits, labels);
            add(&self.sums.uncertainty, &mut self.uncertainty);
            add(&self.sums.slopes, by_bias);
            by_weight(&self.logits, vectors, classes, &mut self.product);
            add(&self.product, by_weights);
        }
        self.uncertainty.iter_mut().for_each(|uncertainty| *uncertainty *= share);
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

    /// The numbers of the head at a point, for vectors whose mean was not subtracted.
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

/// Sums over the rows of a block, by class.
struct BlockSums {
    /// p·(1 − p).
    uncertainty: Vec<f32>,
    /// The gradients by the logits.
    slopes: Vec<f32>,
}

impl BlockSums {
    /// Replaces the logits of some rows by the gradient of the summed cross entropy by them, which is returned.
    fn slopes(&mut self, logits: &mut [f32], labels: &[usize]) -> f64 {
        let classes = self.slopes.len().max(1);
        self.uncertainty.fill(0.0);
        self.slopes.fill(0.0);
        let mut loss = 0.0;
        for (row, &label) in logits.chunks_exact_mut(classes).zip(labels) {
            let top = lanes::max(row);
            row.iter_mut().for_each(|z| *z -= top);
            loss -= row.get(label).copied().map_or(0.0, f64::from);
        }
        // All rows at once: a row of few classes does not fill a vector unit.
        for z in &mut *logits {
            *z = exp_of_negative(*z);
        }
        for (row, &label) in logits.chunks_exact_mut(classes).zip(labels) {
            let sum = lanes::sum(row, f64::from);
            loss += libm::log(sum);
            let scale = (1.0 / sum) as f32;
            for (p, uncertainty) in row.iter_mut().zip(&mut self.uncertainty) {
                *p *= scale;
                *uncertainty += *p * (1.0 - *p);
            }
            if let Some(p) = row.get_mut(label) {
                *p -= 1.0;
            }
            self.slopes.iter_mut().zip(&*row).for_each(|(sum, slope)| *sum += slope);
        }
        loss
    }
}

fn add(numbers: &[f32], to: &mut [f64]) {
    to.iter_mut().zip(numbers).for_each(|(to, &number)| *to += f64::from(number));
}
