//! Gaussian classes, and draws from them.

use calmix_core::rng::{Domain, Seed, Stream};

pub(crate) const CLASSES: usize = 10;
pub(crate) const DIMENSIONS: usize = 24;
/// How far the classes are from each other: at this distance ten labels per class leave an error of about a fifth.
const SEPARATION: f64 = 2.8;

/// The numbers of labels of the classes. New vectors have the same mix.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LabelCounts {
    /// The same for each class.
    Even(usize),
    /// This number for half of the classes, and one for the others.
    HalfSingle(usize),
}

/// The classes of a draw.
pub(crate) struct World {
    pub(crate) classes: Vec<String>,
    counts: Vec<usize>,
    means: Vec<f64>,
    seed: Seed,
}

/// Vectors with their classes.
pub(crate) struct Drawn {
    pub(crate) vectors: Vec<f32>,
    pub(crate) labels: Vec<u32>,
}

impl World {
    pub(crate) fn drawn(counts: LabelCounts, draw: u64) -> Self {
        let seed = Seed(draw);
        let mut stream = seed.stream(Domain::Init, 0, 0);
        let scale = SEPARATION / (DIMENSIONS as f64).sqrt();
        let means = (0..CLASSES * DIMENSIONS).map(|_| scale * stream.normal()).collect();
        let counts = (0..CLASSES).map(|class| match counts {
            LabelCounts::HalfSingle(_) if class >= CLASSES / 2 => 1,
            LabelCounts::Even(count) | LabelCounts::HalfSingle(count) => count,
        });
        let classes = (0..CLASSES).map(|class| format!("class {class}")).collect();
        Self { classes, counts: counts.collect(), means, seed }
    }

    /// The labelled vectors.
    pub(crate) fn labelled(&self, part: u64) -> Drawn {
        let labels = self.counts.iter().zip(0..).flat_map(|(&count, class)| vec![class; count]).collect();
        self.vectors_of(labels, &mut self.seed.stream(Domain::Init, 1, part))
    }

    /// Vectors in the mix of the labels.
    pub(crate) fn mixed(&self, count: usize, part: u64) -> Drawn {
        let mut stream = self.seed.stream(Domain::Init, 1, part);
        let all: usize = self.counts.iter().sum();
        let mut labels = Vec::new();
        for _ in 0..count {
            let mut left = (stream.uniform() * all as f64) as usize;
            let class = self.counts.iter().position(|&labels| {
                let is_it = left < labels;
                left = left.saturating_sub(labels);
                is_it
            });
            labels.push(class.unwrap_or_default() as u32);
        }
        self.vectors_of(labels, &mut stream)
    }

    fn vectors_of(&self, labels: Vec<u32>, stream: &mut Stream) -> Drawn {
        let mut vectors = Vec::with_capacity(labels.len() * DIMENSIONS);
        for &label in &labels {
            let mean = &self.means[label as usize * DIMENSIONS..][..DIMENSIONS];
            vectors.extend(mean.iter().map(|&mean| (mean + stream.normal()) as f32));
        }
        Drawn { vectors, labels }
    }
}
