//! Gaussian classes, and draws from them.

use calmix_core::rng::{Domain, Seed, Stream};

pub(crate) const CLASSES: usize = 10;
pub(crate) const DIMENSIONS: usize = 24;
/// How far the classes are from each other: at this distance ten labels per class leave an error of about a fifth.
const SEPARATION: f64 = 2.8;
/// How far a near-duplicate is from the vector that it repeats, in standard deviations of a class.
const COPY_NOISE: f64 = 0.1;
/// The same for the weak views of a vector, and for the strong ones.
const VIEW_NOISE: [f64; 2] = [0.2, 0.6];
/// The vectors of a sample whose heads are trained step by step: the clean one, two weak views, two strong ones.
pub(crate) const VIEWS: usize = 5;

/// The numbers of labels of the classes. The unlabelled vectors and the new ones have the same mix.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LabelCounts {
    /// The same for each class.
    Even(usize),
    /// This number for half of the classes, and one for the others.
    HalfSingle(usize),
    /// From 25 down to two.
    Uneven,
    /// This number in all, drawn from long-tailed classes, of which the rarest is 50 times as rare as the most frequent; one at least
    /// of each class.
    Drawn(usize),
}

/// The parts of the classes of [`LabelCounts::Drawn`] among the vectors.
const LONG_TAIL: [usize; CLASSES] = [500, 324, 210, 136, 88, 57, 37, 24, 15, 10];

impl LabelCounts {
    /// Returns the part of a class among the vectors: the number of its labels, unless these are drawn.
    fn of_class(self, class: usize) -> usize {
        match self {
            Self::HalfSingle(_) if class >= CLASSES / 2 => 1,
            Self::Even(count) | Self::HalfSingle(count) => count,
            Self::Uneven => [25, 20, 16, 13, 10, 8, 6, 5, 3, 2][class],
            Self::Drawn(_) => LONG_TAIL[class],
        }
    }
}

/// The classes of a draw.
pub(crate) struct World {
    pub(crate) classes: Vec<String>,
    counts: Vec<usize>,
    /// The number of labels to draw; `None` if they are those of `counts`.
    drawn: Option<usize>,
    means: Vec<f64>,
    seed: Seed,
}

/// Vectors with their classes and groups.
pub(crate) struct Drawn {
    pub(crate) vectors: Vec<f32>,
    pub(crate) labels: Vec<u32>,
    /// Near-duplicates have the same number.
    pub(crate) groups: Vec<u32>,
}

impl World {
    pub(crate) fn drawn(counts_of: LabelCounts, draw: u64) -> Self {
        let seed = Seed(draw);
        let mut stream = seed.stream(Domain::Init, 0, 0);
        let scale = SEPARATION / (DIMENSIONS as f64).sqrt();
        let means = (0..CLASSES * DIMENSIONS).map(|_| scale * stream.normal()).collect();
        let counts = (0..CLASSES).map(|class| counts_of.of_class(class)).collect();
        let classes = (0..CLASSES).map(|class| format!("class {class}")).collect();
        let drawn = if let LabelCounts::Drawn(labels) = counts_of { Some(labels) } else { None };
        Self { classes, counts, drawn, means, seed }
    }

    /// The labelled vectors. Of each class this share is in pairs of near-duplicates.
    pub(crate) fn labelled(&self, in_pairs: f64, part: u64) -> Drawn {
        let mut stream = self.seed.stream(Domain::Init, 1, part);
        let counts = self.label_counts(&mut stream);
        let labels: Vec<u32> =
            counts.iter().zip(0..).flat_map(|(&count, class)| vec![class; count]).collect();
        let mut drawn = self.vectors_of(labels, &mut stream);
        let mut first = 0;
        for &count in &counts {
            let pairs = (in_pairs * count as f64 / 2.0).round() as usize;
            for row in (first..first + count).step_by(2).take(pairs) {
                drawn.groups[row + 1] = drawn.groups[row];
                for n in 0..DIMENSIONS {
                    let noise = COPY_NOISE * stream.normal();
                    drawn.vectors[(row + 1) * DIMENSIONS + n] =
                        drawn.vectors[row * DIMENSIONS + n] + noise as f32;
                }
            }
            first += count;
        }
        drawn
    }

    /// Vectors in the mix of the labels.
    pub(crate) fn mixed(&self, count: usize, part: u64) -> Drawn {
        let mut stream = self.seed.stream(Domain::Init, 1, part);
        let labels = (0..count).map(|_| self.class(&mut stream)).collect();
        self.vectors_of(labels, &mut stream)
    }

    /// The number of labels of each class.
    fn label_counts(&self, stream: &mut Stream) -> Vec<usize> {
        let Some(labels) = self.drawn else { return self.counts.clone() };
        let mut counts = vec![0; CLASSES];
        for _ in 0..labels {
            counts[self.class(stream) as usize] += 1;
        }
        counts.into_iter().map(|count| count.max(1)).collect()
    }

    /// Draws a class in the mix of the vectors.
    fn class(&self, stream: &mut Stream) -> u32 {
        let all: usize = self.counts.iter().sum();
        let mut left = (stream.uniform() * all as f64) as usize;
        let class = self.counts.iter().position(|&part| {
            let is_it = left < part;
            left = left.saturating_sub(part);
            is_it
        });
        class.unwrap_or_default() as u32
    }

    fn vectors_of(&self, labels: Vec<u32>, stream: &mut Stream) -> Drawn {
        let mut vectors = Vec::with_capacity(labels.len() * DIMENSIONS);
        for &label in &labels {
            let mean = &self.means[label as usize * DIMENSIONS..][..DIMENSIONS];
            vectors.extend(mean.iter().map(|&mean| (mean + stream.normal()) as f32));
        }
        let groups = (0..labels.len() as u32).collect();
        Drawn { vectors, labels, groups }
    }

    /// Each vector followed by its views.
    pub(crate) fn with_views(&self, vectors: &[f32]) -> Vec<f32> {
        let mut stream = self.seed.stream(Domain::Init, 2, 0);
        let mut rows = Vec::with_capacity(vectors.len() * VIEWS);
        for vector in vectors.chunks_exact(DIMENSIONS) {
            rows.extend_from_slice(vector);
            for noise in VIEW_NOISE {
                for _ in 0..VIEWS / VIEW_NOISE.len() {
                    rows.extend(vector.iter().map(|&number| number + (noise * stream.normal()) as f32));
                }
            }
        }
        rows
    }
}
