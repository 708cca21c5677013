//! Cosine similarity of every row of one set with every row of another.
//!
//! The sums have a fixed order whatever the machine or the size of the batch, so a pair's similarity has the
//! same bits everywhere and ranks never depend on vector units.

use crate::lanes;

/// The number of anchors that share one pass over the pool: few enough to stay in the L1 cache.
const TILE: usize = 4;

/// The range of scales in which no product or sum in f32 overflows or underflows.
const IN_RANGE: std::ops::Range<f64> = 1e-35..1e25;

/// Computes `similarities[i·pool + j] = cos(anchors[i], pool[j])`; zero if a vector is zero.
///
/// Vectors of different lengths are compared over the shorter one.
pub fn cosine_similarities(anchors: &[&[f32]], pool: &[&[f32]]) -> Vec<f32> {
    let (anchor_scales, pool_scales) = (scales(anchors), scales(pool));
    let mut similarities = vec![0.0; anchors.len() * pool.len()];
    for first in (0..anchors.len()).step_by(TILE) {
        for (j, (y, y_scale)) in pool.iter().zip(&pool_scales).enumerate() {
            for i in first..(first + TILE).min(anchors.len()) {
                similarities[i * pool.len() + j] = cosine(anchors[i], y, anchor_scales[i] * y_scale) as f32;
            }
        }
    }
    similarities
}

/// Computes the cosine of two vectors; `scale` is one over the product of their lengths.
fn cosine(x: &[f32], y: &[f32], scale: f64) -> f64 {
    let dot = if IN_RANGE.contains(&scale) {
        f64::from(lanes::dot(x, y))
    } else {
        x.iter().zip(y).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
    };
    dot * scale
}

/// Returns one over the length of each row; zero for a row of zeros.
fn scales(rows: &[&[f32]]) -> Vec<f64> {
    let scale = |row: &&[f32]| {
        let length = lanes::sum(row, |x| f64::from(x) * f64::from(x)).sqrt();
        if length > 0.0 { 1.0 / length } else { 0.0 }
    };
    rows.iter().map(scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Domain, Seed};

    fn rows(count: usize, width: usize, sample: u64) -> Vec<Vec<f32>> {
        let mut s = Seed(5).stream(Domain::Init, 0, sample);
        (0..count).map(|_| (0..width).map(|_| s.normal() as f32).collect()).collect()
    }

    fn slices(rows: &[Vec<f32>]) -> Vec<&[f32]> {
        rows.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn similarities_are_cosines() {
        for (count, width) in [(1, 1), (3, 5), (4, 8), (9, 67)] {
            let (a, b) = (rows(count, width, 1), rows(count + 2, width, 2));
            let found = cosine_similarities(&slices(&a), &slices(&b));
            for (i, x) in a.iter().enumerate() {
                for (j, y) in b.iter().enumerate() {
                    let dot = |x: &[f32], y: &[f32]| -> f64 {
                        x.iter().zip(y).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
                    };
                    let expected = dot(x, y) / (dot(x, x) * dot(y, y)).sqrt();
                    // Rounded products and a sum of at most 67 of them: a few units of 2⁻²⁴.
                    assert!((f64::from(found[i * b.len() + j]) - expected).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn a_similarity_does_not_depend_on_its_neighbours() {
        let (a, b) = (rows(7, 33, 3), rows(5, 33, 4));
        let together = cosine_similarities(&slices(&a), &slices(&b));
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                assert_eq!(together[i * 5 + j].to_bits(), cosine_similarities(&[x], &[y])[0].to_bits());
            }
        }
    }

    #[test]
    fn zeros_and_extremes_stay_finite() {
        assert_eq!(cosine_similarities(&[&[0.0, 0.0]], &[&[1.0, 2.0]]), [0.0]);
        assert_eq!(cosine_similarities(&[&[f32::MAX; 9]], &[&[-f32::MAX; 9]]).len(), 1);
        let extreme = cosine_similarities(&[&[f32::MAX; 9]], &[&[-1e-44; 9]])[0];
        assert!((extreme + 1.0).abs() < 1e-6, "{extreme}");
        assert_eq!(cosine_similarities(&[&[]], &[&[]]), [0.0]);
        assert!(cosine_similarities(&[], &[&[1.0]]).is_empty());
    }
}
