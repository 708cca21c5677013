//! Samples of one vector each.

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_core::mixup::Pairing;
use calmix_core::preset;
use calmix_core::pseudo::{Base, SoftMatch};
use calmix_core::rng::{Domain, Seed};
use calmix_core::schedule::LearningRate;
use calmix_head::progress::FitProgress;
use calmix_head::samples::{HeadSamples, TrainingRows};
use calmix_head::settings::{Candidates, HeadSettings};

pub(crate) struct Scene {
    ids: Vec<u64>,
    vectors: Vec<f32>,
    width: usize,
    pub(crate) labels: Vec<Option<u32>>,
    classes: Vec<String>,
}

impl Scene {
    pub(crate) fn of(vectors: Vec<f32>, width: usize, labels: Vec<u32>, classes: usize) -> Self {
        Self {
            ids: (0..labels.len() as u64).map(|id| 2 * id + 1).collect(),
            vectors,
            width,
            labels: labels.into_iter().map(Some).collect(),
            classes: (0..classes).map(|class| format!("class {class}")).collect(),
        }
    }

    /// Clouds of unit length, class by class in turn: wide along the last dimensions, which say nothing about the class.
    pub(crate) fn clouds(samples: usize, width: usize, classes: usize, spread: f64) -> Self {
        let mut stream = Seed(7).stream(Domain::Init, 0, 0);
        let centres: Vec<f64> =
            (0..classes * width).map(|n| if n % width < width / 2 { stream.normal() } else { 0.0 }).collect();
        let mut vectors = Vec::with_capacity(samples * width);
        for sample in 0..samples {
            let class = sample % classes;
            let centre = &centres[class * width..(class + 1) * width];
            let noise = |d: usize| if d < width / 2 { spread } else { 2.0 * spread };
            let point: Vec<f64> =
                centre.iter().enumerate().map(|(d, x)| x + noise(d) * stream.normal()).collect();
            let length = point.iter().map(|x| x * x).sum::<f64>().sqrt();
            vectors.extend(point.iter().map(|x| (x / length) as f32));
        }
        let labels = (0..samples).map(|sample| (sample % classes) as u32).collect();
        Self::of(vectors, width, labels, classes)
    }

    pub(crate) fn samples(&self) -> HeadSamples<'_> {
        HeadSamples {
            ids: &self.ids,
            vectors: Matrix::new(&self.vectors, self.ids.len(), self.width).expect("whole rows").into(),
            weak: 0,
            strong: 0,
            labels: &self.labels,
            classes: &self.classes,
            groups: &[],
            chosen: &[],
            weights: &[],
        }
    }

    /// The same samples, and copies of some rows after them.
    pub(crate) fn with_copies(&self, rows: &[usize]) -> Self {
        let mut vectors = self.vectors.clone();
        let mut labels: Vec<u32> = self.labels.iter().flatten().copied().collect();
        for &row in rows {
            vectors.extend_from_slice(&self.vectors[row * self.width..(row + 1) * self.width]);
            labels.push(labels[row]);
        }
        Self::of(vectors, self.width, labels, self.classes.len())
    }

    /// The first rows with their labels, and all of them without.
    pub(crate) fn rows(&self, labelled: usize) -> TrainingRows {
        TrainingRows { labelled: (0..labelled).collect(), unlabelled: (0..self.ids.len()).collect() }
    }
}

pub(crate) fn with_progress<T>(run: impl FnOnce(&FitProgress<'_>) -> T) -> T {
    run(&FitProgress::new(&AtomicBool::new(false)))
}

pub(crate) fn settings() -> HeadSettings {
    let mut method = preset::paper(Base::SoftMatch(SoftMatch::default()));
    method.mixup.pairing = Pairing::None;
    HeadSettings {
        method,
        hidden: None,
        steps: 60,
        batch: 8,
        unlabelled_batch: 24,
        lr: 1.0,
        schedule: LearningRate::Cosine,
        momentum: 0.9,
        nesterov: true,
        weight_decay: 0.0,
        clip: None,
        ema_decay: 0.95,
        folds: 4,
        candidates: Candidates::OneVector,
        labels_alone: false,
        neighbours: true,
        log_every: 10,
        seed: Seed(11),
    }
}
