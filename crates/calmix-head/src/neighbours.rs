//! Heads that know neighbours: labels spread over a graph of nearest neighbours of all samples (Zhou and others, NIPS 2003), and a head
//! with a hidden layer learns the result.
//!
//! The graph knows the samples that it was made of, and no others. The head predicts all rows in one way: held-out labels, the
//! unlabelled rows of the graph, and new ones. Calibrator and guarantees then rest on predictions of one kind. The model is as large as
//! the head, not as the graph.
//!
//! All that labels do not change is computed once for all folds. The result does not depend on the number of threads.

mod graph;
mod landmarks;

use crate::error::HeadError;
use crate::network::Head;
use crate::progress::FitProgress;
use crate::samples::{HeadSamples, TrainingRows};
use calmix_core::rng::Seed;
use graph::Graph;
use landmarks::Landmarks;

/// The largest number of samples of a graph: the time that its neighbours take grows with the square.
pub const MAX_ROWS: usize = 20_000;
/// The largest number of probabilities of a graph, 64 MiB.
const MAX_PROBABILITIES: usize = 1 << 24;
/// Added to a probability before its logarithm is taken: the head does not have to tell one impossible class from another.
const MIN_PROBABILITY: f64 = 0.01;
/// Multiplies the logits. Ridge regression and the lowest probability leave them too small: on digits, CIFAR-10 and Fashion-MNIST with 2
/// to 20 labels per class, by factors of 1.1 to 3. The few labels that fit a temperature then have to change it less.
const UNDERCONFIDENCE: f64 = 2.0;
/// The distance of the logit of a class without labels below the mean of the others.
const BELOW_OTHERS: f64 = 10.0;

/// The graph of some rows, and the hidden layer of the heads that are trained on it.
#[derive(Debug, PartialEq)]
pub struct Neighbours {
    /// The rows of the samples, ascending.
    rows: Vec<usize>,
    graph: Graph,
    landmarks: Landmarks,
}

/// Returns whether a graph of this many samples has neighbours, and takes seconds and little memory.
pub fn fits(samples: usize, classes: usize) -> bool {
    (2..=MAX_ROWS).contains(&samples) && samples.saturating_mul(classes) <= MAX_PROBABILITIES
}

impl Neighbours {
    /// Finds the neighbours of all rows, labelled or not; `None` unless they [fit](fits).
    ///
    /// # Errors
    /// If a vector cannot be read, a product is not finite, or the fit has to stop.
    pub fn new(
        samples: &HeadSamples<'_>,
        rows: &TrainingRows,
        seed: Seed,
        threads: usize,
        progress: &FitProgress<'_>,
    ) -> Result<Option<Self>, HeadError> {
        let mut rows: Vec<usize> = rows.labelled.iter().chain(&rows.unlabelled).copied().collect();
        rows.sort_unstable();
        rows.dedup();
        if !fits(rows.len(), samples.classes.len()) {
            return Ok(None);
        }
        let vectors = samples.unaugmented(&rows)?;
        let graph = Graph::new(&vectors, samples.width(), threads, progress)?;
        let ids: Vec<u64> = rows.iter().map(|&row| samples.ids[row]).collect();
        let landmarks = Landmarks::new(&vectors, &ids, seed, threads, progress)?;
        Ok(Some(Self { rows, graph, landmarks }))
    }

    /// Trains a head with the labels of some of the rows.
    ///
    /// # Errors
    /// If a number is not finite, or the fit has to stop.
    pub fn head(
        &self,
        samples: &HeadSamples<'_>,
        rows: &TrainingRows,
        progress: &FitProgress<'_>,
    ) -> Result<Head, HeadError> {
        let class_of = |row: usize| samples.label(row).unwrap_or_default() as usize;
        let mut labelled = rows.labelled.clone();
        labelled.sort_unstable();
        let mut present: Vec<usize> = labelled.iter().map(|&row| class_of(row)).collect();
        present.sort_unstable();
        present.dedup();
        let classes = present.len();
        let mut labels = vec![0.0_f32; self.rows.len() * classes];
        let mut shares = vec![0.0_f64; classes];
        for row in labelled {
            let (Ok(node), Ok(class)) =
                (self.rows.binary_search(&row), present.binary_search(&class_of(row)))
            else {
                return Err(HeadError::Input(format!("row {row} has a label, but is not in the graph")));
            };
            let weight = samples.weight(row);
            labels[node * classes + class] = weight as f32;
            shares[class] += weight;
        }
        let mut targets = self.graph.spread(&labels, classes, progress)?;
        log_probabilities(&mut targets, &shares);
        let (weights, biases) = self.landmarks.fit(&targets, classes, progress)?;
        let units = self.landmarks.units();
        // A class without a label stays unlikely wherever the vector is.
        let mut mean = vec![0.0; units];
        for weights in weights.chunks_exact(units) {
            mean.iter_mut().zip(weights).for_each(|(mean, weight)| *mean += weight / classes as f64);
        }
        let mean_bias = biases.iter().sum::<f64>() / classes as f64;
        let mut all_weights = Vec::with_capacity(samples.classes.len() * units);
        let mut all_biases = Vec::with_capacity(samples.classes.len());
        for class in 0..samples.classes.len() {
            let position = present.binary_search(&class).ok();
            let weights = position.map_or(&mean[..], |n| &weights[n * units..(n + 1) * units]);
            all_weights.extend(weights.iter().map(|&weight| (UNDERCONFIDENCE * weight) as f32));
            let bias = position.map_or(mean_bias - BELOW_OTHERS, |n| biases[n]);
            all_biases.push((UNDERCONFIDENCE * bias) as f32);
        }
        self.landmarks.head(&all_weights, &all_biases)
    }
}

/// Turns what reached each row into logarithms of probabilities. A row that nothing reached has the shares of the labels.
fn log_probabilities(rows: &mut [f32], shares: &[f64]) {
    let labels: f64 = shares.iter().sum();
    for row in rows.chunks_exact_mut(shares.len().max(1)) {
        let sum: f64 = row.iter().map(|&number| f64::from(number)).sum();
        for (number, share) in row.iter_mut().zip(shares) {
            let probability = if sum > 0.0 { f64::from(*number) / sum } else { share / labels };
            *number = libm::log(probability + MIN_PROBABILITY) as f32;
        }
    }
}
