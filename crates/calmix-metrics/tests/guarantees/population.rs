//! Images of a simulated world, whose true class probabilities are known: coverage and precision need no test set.

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed, Stream};
use calmix_core::softmax::argmax;
use calmix_metrics::abstention::log_odds;

/// Images of a world. Draws take them with replacement, so that what holds of all of them is the truth of a draw.
pub(crate) const IMAGES: usize = 4_000;

/// Logits of images, beside the true probabilities of their classes.
pub(crate) struct Population {
    pub(crate) classes: usize,
    logits: Vec<f32>,
    truth: Vec<f64>,
    /// The uncalibrated scores, the highest first, and how many of the answers down to each are right, on average.
    by_score: Vec<(f64, f64)>,
}

/// Labelled images.
pub(crate) struct Draw {
    pub(crate) logits: Vec<f32>,
    pub(crate) labels: Vec<u32>,
}

impl Population {
    /// Over-confident logits, each class of which has a scale and a bias of its own: vector scaling can undo it.
    pub(crate) fn distorted(classes: usize) -> Self {
        let mut stream = Seed(classes as u64).stream(Domain::Split, 0, 0);
        let spread = if classes > 10 { 4.0 } else { 3.0 };
        let scale: Vec<f64> = (0..classes).map(|_| libm::exp(0.3 * stream.normal())).collect();
        let bias: Vec<f64> = (0..classes).map(|_| 1.5 * stream.normal()).collect();
        let image = |stream: &mut Stream| {
            let true_logits: Vec<f64> = (0..classes).map(|_| spread * stream.normal()).collect();
            let distorted = |k: usize| (1.5 * (true_logits[k] - bias[k]) / scale[k]) as f32;
            let logits: Vec<f32> = (0..classes).map(distorted).collect();
            (logits, true_logits.into_iter().map(libm::exp).collect())
        };
        Self::new(classes, stream, image)
    }

    /// Answers that are right with the same probability at every confidence: no part of them is better than another.
    pub(crate) fn flat(classes: usize, accuracy: f64) -> Self {
        let stream = Seed(classes as u64).stream(Domain::Split, 1, 0);
        let image = |stream: &mut Stream| {
            let mut logits: Vec<f32> = (0..classes).map(|_| 0.5 * stream.normal() as f32).collect();
            let winner = (stream.uniform() * classes as f64) as usize;
            let mut weights: Vec<f64> = logits.iter().map(|&z| libm::exp(f64::from(z))).collect();
            let others: f64 = weights.iter().sum::<f64>() - weights[winner];
            // Between 82% and 99% sure.
            logits[winner] = (libm::log(others) + 1.5 + 3.0 * stream.uniform()) as f32;
            weights[winner] = others * accuracy / (1.0 - accuracy);
            (logits, weights)
        };
        Self::new(classes, stream, image)
    }

    fn new(classes: usize, mut stream: Stream, image: impl Fn(&mut Stream) -> (Vec<f32>, Vec<f64>)) -> Self {
        let mut population = Self { classes, logits: Vec::new(), truth: Vec::new(), by_score: Vec::new() };
        for _ in 0..IMAGES {
            let (logits, weights) = image(&mut stream);
            let sum: f64 = weights.iter().sum();
            population.truth.extend(weights.iter().map(|weight| weight / sum));
            population.by_score.push((log_odds(&logits), weights[argmax(&logits)] / sum));
            population.logits.extend(logits);
        }
        population.by_score.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut right = 0.0;
        for (_, accuracy) in &mut population.by_score {
            right += *accuracy;
            *accuracy = right;
        }
        population
    }

    pub(crate) fn logits(&self, image: usize) -> &[f32] {
        &self.logits[image * self.classes..(image + 1) * self.classes]
    }

    pub(crate) fn truth(&self, image: usize) -> &[f64] {
        &self.truth[image * self.classes..(image + 1) * self.classes]
    }

    /// An image, each as likely as the others.
    pub(crate) fn any(stream: &mut Stream) -> usize {
        ((stream.uniform() * IMAGES as f64) as usize).min(IMAGES - 1)
    }

    pub(crate) fn draw(&self, n: usize, stream: &mut Stream) -> Draw {
        let mut draw = Draw { logits: Vec::with_capacity(n * self.classes), labels: Vec::with_capacity(n) };
        for _ in 0..n {
            let image = Self::any(stream);
            let mut left = stream.uniform();
            let label = self.truth(image).iter().position(|p| {
                left -= p;
                left < 0.0
            });
            draw.logits.extend_from_slice(self.logits(image));
            draw.labels.push(label.unwrap_or(self.classes - 1) as u32);
        }
        draw
    }

    /// Of the images whose uncalibrated score is at least `threshold`: the share of right answers, and their share of all
    /// images. None without any.
    pub(crate) fn answered_above(&self, threshold: f64) -> Option<(f64, f64)> {
        let answered = self.by_score.partition_point(|(score, _)| *score >= threshold);
        let (_, right) = self.by_score.get(answered.checked_sub(1)?)?;
        Some((right / answered as f64, answered as f64 / IMAGES as f64))
    }
}

impl Draw {
    pub(crate) fn matrix(&self) -> Matrix<'_> {
        let n = self.labels.len();
        Matrix::new(&self.logits, n, self.logits.len() / n).expect("a row per label")
    }
}
