//! The inputs of `golden/calibration_measures.py`, drawn again: the two must change together.

use std::num::NonZeroU16;

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed, Stream};
use calmix_core::softmax::argmax;
use calmix_metrics::measure::{Binning, Edges, ReliabilityBin, TopLabel, reliability_bins};

const BINS: [u16; 9] = [1, 2, 5, 8, 10, 15, 16, 20, 32];
const SPECIAL: [f64; 11] = [0.0, 1.0, 0.5, 0.25, 0.75, 0.1, 0.2, 0.4, 0.9, 0.125, 0.968_75];
const SMALL_SCORES: usize = 1200;

fn below(stream: &mut Stream, bound: usize) -> usize {
    (stream.uniform() * bound as f64) as usize
}

/// Confidences and whether they were right.
pub(super) struct Scores {
    pub(super) predictions: TopLabel,
    pub(super) bins: NonZeroU16,
}

impl Scores {
    pub(super) fn draw(case: usize) -> Self {
        let s = &mut Seed(1).stream(Domain::Bootstrap, 0, case as u64);
        if case < SMALL_SCORES { Self::small(s) } else { Self::large(s) }
    }

    fn small(s: &mut Stream) -> Self {
        let n = 1 + below(s, 40);
        let bins = BINS[below(s, BINS.len())];
        let kind = below(s, 4);
        let calibrated = s.uniform() < 0.5;
        let mut confidence = Vec::new();
        let mut correct = Vec::new();
        for _ in 0..n {
            let u = s.uniform();
            let c = if kind == 1 || kind == 3 && s.uniform() < 0.5 {
                SPECIAL[(u * SPECIAL.len() as f64) as usize]
            } else if kind == 2 {
                1.0 - u * u * u
            } else {
                u
            };
            confidence.push(c);
            correct.push(s.uniform() < if calibrated { c } else { 0.7 });
        }
        Self::new(confidence, correct, bins)
    }

    /// Many confidences, each up to 2% too high: so even that smooth ECE needs a narrow kernel and a fine grid.
    fn large(s: &mut Stream) -> Self {
        let n = 1000 + below(s, 2000);
        let bins = BINS[below(s, BINS.len())];
        let truth = 1.0 - 0.02 * s.uniform();
        let mut confidence: Vec<f64> = (0..n).map(|_| s.uniform()).collect();
        confidence.sort_by(f64::total_cmp);
        let mut expected = 0.0_f64;
        let is_correct = |c: &f64| {
            let before = expected.floor();
            expected += c * truth;
            expected.floor() > before
        };
        let correct = confidence.iter().map(is_correct).collect();
        Self::new(confidence, correct, bins)
    }

    fn new(confidence: Vec<f64>, correct: Vec<bool>, bins: u16) -> Self {
        Self {
            predictions: TopLabel::new(confidence, correct).unwrap(),
            bins: NonZeroU16::new(bins).unwrap(),
        }
    }

    pub(super) fn bins(&self, edges: Edges) -> Vec<ReliabilityBin> {
        let bins = self.bins;
        reliability_bins(&self.predictions, Binning::EqualWidth { bins, edges })
    }
}

/// Probabilities that sum to one exactly (multiples of a power of two), labels, logits and a temperature.
pub(super) struct Predictions {
    rows: usize,
    classes: usize,
    probabilities: Vec<f32>,
    logits: Vec<f32>,
    pub(super) labels: Vec<u32>,
    pub(super) temperature: f64,
    bins: NonZeroU16,
}

impl Predictions {
    pub(super) fn draw(case: usize) -> Self {
        let s = &mut Seed(1).stream(Domain::Bootstrap, 1, case as u64);
        let rows = 1 + below(s, 40);
        let classes = 1 + below(s, 6);
        let bins = NonZeroU16::new(BINS[below(s, BINS.len())]).unwrap();
        let grain = [4, 16, 1 << 20][below(s, 3)];
        let scale = [1.0, 20.0, 200.0][below(s, 3)];
        let temperature = 0.5 + 2.0 * s.uniform();
        let mut probabilities = Vec::new();
        let mut logits = Vec::new();
        let mut labels = Vec::new();
        for _ in 0..rows {
            let mut cuts: Vec<usize> = (1..classes).map(|_| below(s, grain + 1)).collect();
            cuts.extend([0, grain]);
            cuts.sort_unstable();
            let row: Vec<f32> = cuts.windows(2).map(|cut| (cut[1] - cut[0]) as f32 / grain as f32).collect();
            logits.extend((0..classes).map(|_| ((s.uniform() - 0.5) * scale) as f32));
            let mut label = below(s, classes);
            if s.uniform() < 0.5 {
                label = argmax(&row);
            }
            labels.push(label as u32);
            probabilities.extend(row);
        }
        Self { rows, classes, probabilities, logits, labels, temperature, bins }
    }

    pub(super) fn probabilities(&self) -> Matrix<'_> {
        Matrix::new(&self.probabilities, self.rows, self.classes).unwrap()
    }

    pub(super) fn logits(&self) -> Matrix<'_> {
        Matrix::new(&self.logits, self.rows, self.classes).unwrap()
    }

    pub(super) fn equal_width(&self, edges: Edges) -> Binning {
        Binning::EqualWidth { bins: self.bins, edges }
    }
}
