//! Calibration error without bins: smooth ECE.

use super::TopLabel;

/// The smooth calibration error and the bandwidth it was measured at.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SmoothEce {
    /// The error, in [0, 1].
    pub error: f64,
    /// The bandwidth of the kernel, at the fixed point.
    pub bandwidth: f64,
}

/// Computes the smooth ECE (Błasiok and Nakkiran, "Smooth ECE: principled reliability diagrams via kernel smoothing", 2023).
///
/// Replaces bins by a Gaussian kernel reflected at 0 and 1: `smECE(σ) = ∫ |r(t)| dt / ∫ d(t) dt`, where `r` is the residual
/// `confidence − correct` smoothed over confidences with bandwidth σ and `d` their smoothed density. The bandwidth is the fixed
/// point `smECE(σ) = σ`, the scale at which error and resolution balance; the error decreases in σ, so bisection finds it, to
/// 1/1024. A small change of a confidence changes the result only slightly, which no binned error guarantees.
///
/// Discretised exactly as in the authors' package `relplot`, so that the numbers agree with it: residuals are spread over a grid
/// of at least 10/σ cells and 1000, smoothed there, and read at 10/σ points or 200. The rows are put in the order of confidence
/// first: shuffled rows give the same bits.
pub fn smooth_ece(predictions: &TopLabel) -> SmoothEce {
    if predictions.is_empty() {
        return SmoothEce::default();
    }
    let rows = predictions.confidence().iter().zip(predictions.correct());
    let mut rows: Vec<(f64, f64)> =
        rows.map(|(&confidence, &correct)| (confidence, confidence - f64::from(u8::from(correct)))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));

    let mut found = SmoothEce { error: smooth_ece_at(&rows, 1.0), bandwidth: 1.0 };
    let mut low = 0.0;
    for _ in 0..HALVINGS {
        let bandwidth = f64::midpoint(low, found.bandwidth);
        let error = smooth_ece_at(&rows, bandwidth);
        if bandwidth < MIN_BANDWIDTH || bandwidth < error {
            low = bandwidth;
        } else {
            found = SmoothEce { error, bandwidth };
        }
    }
    found
}

const HALVINGS: u32 = 10;
const MIN_BANDWIDTH: f64 = 0.001;
/// Added to the density at every point: `relplot`'s guard against a division by zero, kept for equal results.
const DENSITY_FLOOR: f64 = 1e-4;
/// The kernel is cut where it is below exp(−40) < 2⁻⁵⁷ of its peak, which cannot change a sum in f64.
const REACH: f64 = 9.0;

/// A residual and a density at one point.
type Pair = (f64, f64);

/// Computes smECE at one bandwidth, from rows of `(confidence, residual)`.
fn smooth_ece_at(rows: &[Pair], bandwidth: f64) -> f64 {
    let nodes = (20.0 / bandwidth).round_ties_even().max(2000.0) as usize / 2 + 1;
    let points = (10.0 / bandwidth).round_ties_even().max(200.0) as usize;
    let spread = spread_over_grid(rows, nodes);
    let kernel = Kernel::new(bandwidth, nodes);

    // If the nodes are finer than the points, not every node is read.
    let mut smoothed: Vec<Option<Pair>> = vec![None; nodes];
    let mut at_node = |node: usize| *smoothed[node].get_or_insert_with(|| kernel.smooth(&spread, node));

    let mut error = 0.0;
    let mut mass = 0.0;
    for point in 0..points {
        let at = point as f64 / (points - 1) as f64 * (nodes - 1) as f64;
        let node = (at as usize).min(nodes - 2);
        let part = at - node as f64;
        let left = at_node(node);
        let right = at_node(node + 1);
        error += (left.0 * (1.0 - part) + right.0 * part).abs();
        mass += left.1 * (1.0 - part) + right.1 * part + DENSITY_FLOOR;
    }
    error / mass
}

/// Spreads every row over the two grid nodes around its confidence, weighted by nearness, and reflects the grid at both ends,
/// so that node `i` has index `nodes − 1 + i`. Empty nodes are left out.
fn spread_over_grid(rows: &[Pair], nodes: usize) -> Vec<(usize, Pair)> {
    let mut grid = vec![Pair::default(); nodes];
    for &(confidence, residual) in rows {
        let at = confidence * (nodes - 1) as f64;
        let node = (at as usize).min(nodes - 2);
        let part = at - node as f64;
        for (node, share) in [(node, 1.0 - part), (node + 1, part)] {
            grid[node].0 += share * residual;
            grid[node].1 += share;
        }
    }
    let below = grid[1..].iter().rev();
    let above = grid[..nodes - 1].iter().rev();
    let reflected = below.chain(&grid).chain(above).copied().enumerate();
    // Adding an empty node changes no sum, not even in the last bit, and with few rows nearly all are empty.
    reflected.filter(|&(_, value)| value != Pair::default()).collect()
}

/// A Gaussian on the nodes of the unit interval around ½.
struct Kernel {
    weights: Vec<f64>,
    /// The index of the first weight in a reflected grid when node 0 is smoothed.
    start: usize,
}

impl Kernel {
    fn new(bandwidth: f64, nodes: usize) -> Self {
        let from_centre = |node: usize| node as f64 / (nodes - 1) as f64 - 0.5;
        let kept = |&node: &usize| from_centre(node).abs() <= REACH * bandwidth;
        let first = (0..nodes).find(kept).unwrap_or(0);
        let scale = (2.0 * std::f64::consts::PI).sqrt() * bandwidth;
        let weight = |node| {
            let u = from_centre(node);
            libm::exp(-u * u / (2.0 * bandwidth * bandwidth)) / scale
        };
        Self {
            weights: (first..nodes - first).map(weight).collect(),
            // An even grid has no node at ½; there `relplot` sets the kernel half a node to the right.
            start: nodes / 2 + first,
        }
    }

    /// Smooths a reflected grid at `node`.
    fn smooth(&self, reflected: &[(usize, Pair)], node: usize) -> Pair {
        let start = self.start + node;
        let before = |end: usize| reflected.partition_point(|&(place, _)| place < end);
        let in_reach = &reflected[before(start)..before(start + self.weights.len())];
        in_reach.iter().fold((0.0, 0.0), |(residual, density), &(place, value)| {
            let w = self.weights[place - start];
            (residual + w * value.0, density + w * value.1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calmix_core::rng::{Domain, Seed};

    #[test]
    fn constant_gap_is_the_error() {
        // Everywhere 0.2 too confident: |r| = 0.2 d at any bandwidth, so the fixed point is 0.2.
        let predictions = TopLabel::new(vec![0.7; 10], [[true; 5], [false; 5]].concat()).unwrap();
        let found = smooth_ece(&predictions);
        assert!((found.error - 0.2).abs() < 1e-5, "{found:?}");
        assert!(found.bandwidth >= 0.2 && found.bandwidth < 0.2 + 1.0 / 1024.0);
    }

    #[test]
    fn certain_mistakes_are_the_worst() {
        let wrong = smooth_ece(&TopLabel::new(vec![1.0; 3], vec![false; 3]).unwrap());
        assert!(wrong.error > 0.999 && wrong.error <= 1.0, "{wrong:?}");
        let right = smooth_ece(&TopLabel::new(vec![1.0; 3], vec![true; 3]).unwrap());
        assert_eq!(right.error, 0.0);
        assert_eq!(smooth_ece(&TopLabel::new(vec![], vec![]).unwrap()).error, 0.0);
    }

    #[test]
    fn error_falls_with_more_calibrated_rows() {
        let error = |n: usize| {
            let mut stream = Seed(4).stream(Domain::Bootstrap, 0, 0);
            let confidence: Vec<f64> = (0..n).map(|_| stream.uniform()).collect();
            let correct = confidence.iter().map(|&c| stream.uniform() < c).collect();
            smooth_ece(&TopLabel::new(confidence, correct).unwrap()).error
        };
        let few = error(100);
        let many = error(20_000);
        assert!(many < 0.02 && few > 2.0 * many, "{few} {many}");
    }
}
