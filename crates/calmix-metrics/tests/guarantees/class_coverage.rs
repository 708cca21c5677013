//! How often sets contain the true class, class by class.

use super::{COVERAGE, new_images};

/// The coverage of each class, over all draws of a cell.
#[derive(Debug)]
pub(crate) struct ClassCoverage {
    /// How many new images are of each class, on average.
    images: Vec<f64>,
    /// Of those, how many are in a set with it.
    covered: Vec<f64>,
}

impl ClassCoverage {
    pub(crate) fn new(classes: usize) -> Self {
        Self { images: vec![0.0; classes], covered: vec![0.0; classes] }
    }

    /// Counts a new image with the probabilities of its true classes.
    pub(crate) fn add(&mut self, set: &[u32], truth: &[f64]) {
        for (images, probability) in self.images.iter_mut().zip(truth) {
            *images += probability;
        }
        for &class in set {
            self.covered[class as usize] += truth[class as usize];
        }
    }

    fn of_classes(&self) -> impl Iterator<Item = f64> {
        self.covered.iter().zip(&self.images).map(|(covered, images)| covered / images)
    }

    pub(crate) fn lowest(&self) -> f64 {
        self.of_classes().fold(1.0, f64::min)
    }

    /// The coverage where the k-th class is k times as rare as the first, though the held-out labels were not.
    pub(crate) fn shifted(&self) -> f64 {
        let weights = self.weights();
        self.of_classes().zip(weights).map(|(coverage, weight)| coverage * weight).sum()
    }

    fn weights(&self) -> Vec<f64> {
        let share = |class: usize| 1.0 / (class + 1) as f64;
        let sum: f64 = (0..self.images.len()).map(share).sum();
        (0..self.images.len()).map(|class| share(class) / sum).collect()
    }

    /// What is covered too rarely, beyond what chance explains; `labels` are those of all draws.
    pub(crate) fn faults(&self, labels: usize) -> Vec<String> {
        let mut faults = Vec::new();
        // Of one class. Its coverage varies with its share of the labels, and with the new images it is measured on.
        let classes = self.images.len() as f64;
        let sampling = 1.0 / labels as f64 + 1.0 / new_images() as f64;
        let variance = COVERAGE * (1.0 - COVERAGE) * classes * sampling;
        for (class, coverage) in self.of_classes().enumerate() {
            // A class out of hundreds of all cells: four deviations.
            if coverage < COVERAGE - 4.0 * variance.sqrt() {
                faults.push(format!("{:.1}% of class {class}", 100.0 * coverage));
            }
        }
        let squares: f64 = self.weights().iter().map(|weight| weight * weight).sum();
        if self.shifted() < COVERAGE - 3.0 * (variance * squares).sqrt() {
            faults.push(format!("{:.1}% under a shift of the classes", 100.0 * self.shifted()));
        }
        faults
    }
}
