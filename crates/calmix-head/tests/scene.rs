//! Clouds of points around the corners of a simplex, in several views.
#![allow(dead_code, reason = "not every test asks for everything")]

use calmix_core::matrix::Matrix;
use calmix_core::method::Method;
use calmix_core::pseudo::Base;
use calmix_core::rng::{Domain, Seed};
use calmix_core::schedule::LearningRate;
use calmix_head::samples::{HeadSamples, TrainingRows};
use calmix_head::settings::{Candidates, HeadSettings};

pub(crate) const CLASSES: usize = 5;
pub(crate) const WIDTH: usize = 16;
const SAMPLES: usize = 200;
const WEAK: u8 = 2;
const STRONG: u8 = 2;

pub(crate) struct Scene {
    ids: Vec<u64>,
    vectors: Vec<f32>,
    pub(crate) labels: Vec<Option<u32>>,
    classes: Vec<String>,
    labelled: usize,
}

impl Scene {
    /// With this number of labels of each class.
    pub(crate) fn new(labels: usize) -> Self {
        let mut stream = Seed(5).stream(Domain::Init, 0, 0);
        let mut vectors = Vec::new();
        for sample in 0..SAMPLES {
            let point: Vec<f64> = (0..WIDTH)
                .map(|d| f64::from(u8::from(d == sample % CLASSES)) + 0.35 * stream.normal())
                .collect();
            let views = 1 + usize::from(WEAK) + usize::from(STRONG);
            for view in 0..views {
                let noise = [0.0, 0.1, 0.1, 0.25, 0.25][view];
                let moved: Vec<f64> = point.iter().map(|x| x + noise * stream.normal()).collect();
                let length = moved.iter().map(|x| x * x).sum::<f64>().sqrt();
                vectors.extend(moved.iter().map(|x| (x / length) as f32));
            }
        }
        Self {
            ids: (0..SAMPLES as u64).map(|id| 3 * id + 1).collect(),
            vectors,
            labels: (0..SAMPLES).map(|sample| Some((sample % CLASSES) as u32)).collect(),
            classes: (0..CLASSES).map(|class| format!("class {class}")).collect(),
            labelled: labels * CLASSES,
        }
    }

    pub(crate) fn samples(&self) -> HeadSamples<'_> {
        HeadSamples {
            ids: &self.ids,
            vectors: Matrix::new(&self.vectors, SAMPLES, self.vectors.len() / SAMPLES)
                .expect("whole rows")
                .into(),
            weak: WEAK,
            strong: STRONG,
            labels: &self.labels,
            classes: &self.classes,
            groups: &[],
            chosen: &[],
            weights: &[],
        }
    }

    /// The first samples with their labels, and all of them without.
    pub(crate) fn rows(&self, unlabelled: bool) -> TrainingRows {
        let unlabelled = if unlabelled { (0..SAMPLES).collect() } else { Vec::new() };
        TrainingRows { labelled: (0..self.labelled).collect(), unlabelled }
    }
}

pub(crate) fn settings(method: Method) -> HeadSettings {
    let needs_unlabelled = method.base != Base::Supervised || method.mixup().is_some();
    HeadSettings {
        method,
        hidden: None,
        steps: 60,
        batch: 8,
        unlabelled_batch: if needs_unlabelled { 24 } else { 0 },
        lr: 1.0,
        schedule: LearningRate::Cosine,
        momentum: 0.9,
        nesterov: true,
        weight_decay: 0.0,
        clip: None,
        ema_decay: 0.95,
        folds: 4,
        candidates: Candidates::Method,
        labels_alone: true,
        neighbours: false,
        log_every: 10,
        seed: Seed(11),
    }
}
