//! A graph of nearest neighbours, and the spreading of labels over it.

use crate::error::HeadError;
use crate::parallel;
use crate::product::{Operand, multiply};
use crate::progress::FitProgress;

/// The number of neighbours of a sample, before edges are made to go both ways.
const NEIGHBOURS: usize = 10;
/// The neighbour whose median squared distance is the unit of distance: the weight of an edge is `exp(−distance²/unit)`.
const UNIT_NEIGHBOUR: usize = 7;
/// The share of what a sample gets from its neighbours; the rest is from its own label. With this and the weights above, errors of
/// scikit-learn's digits, Fashion-MNIST and CIFAR-10 were lowest or nearly so, with 2, 5 and 20 labels per class: 0.5 spreads too
/// little with few labels, 0.99 too much with many.
const SPREAD: f32 = 0.9;
const ITERATIONS: usize = 30;
/// The number of rows whose distances to all others one product computes.
const BLOCK: usize = 128;

/// The edges of each sample to its neighbours.
#[derive(Debug, PartialEq)]
pub(super) struct Graph {
    /// The place in `edges` of the first edge of each sample, and their number at the end.
    starts: Vec<usize>,
    /// The other sample, and the weight divided by the roots of the sums of both samples' weights.
    edges: Vec<(u32, f32)>,
}

/// A neighbour and its squared distance.
type Near = (f32, u32);

impl Graph {
    /// Finds the exact neighbours of vectors, one after the other.
    pub(super) fn new(
        vectors: &[f32],
        width: usize,
        threads: usize,
        progress: &FitProgress<'_>,
    ) -> Result<Self, HeadError> {
        let near = nearest(vectors, width, threads, progress)?;
        let mut units: Vec<f32> = near
            .iter()
            .filter_map(|near| near.get(UNIT_NEIGHBOUR - 1).or(near.last()))
            .map(|near| near.0)
            .collect();
        units.sort_by(f32::total_cmp);
        // Of many copies, the median may be zero: all neighbours then weigh the same.
        let unit = f64::from(units.get(units.len() / 2).copied().unwrap_or_default());
        let mut edges: Vec<(u32, u32, f32)> = Vec::with_capacity(2 * near.len() * NEIGHBOURS);
        for (sample, near) in (0_u32..).zip(&near) {
            for &(distance, other) in near {
                let weight = if unit > 0.0 { libm::exp(-f64::from(distance) / unit) } else { 1.0 };
                // The edges of a sample that is far from all others must not vanish.
                let weight = weight.max(f64::from(f32::MIN_POSITIVE)) as f32;
                edges.push((sample, other, weight));
                edges.push((other, sample, weight));
            }
        }
        // Of both directions, whose distances may differ in the last bit, the larger weight comes first and stays.
        edges.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.total_cmp(&a.2)));
        edges.dedup_by_key(|edge| (edge.0, edge.1));
        let mut sums = vec![0.0_f64; near.len()];
        let mut starts = vec![0; near.len() + 1];
        for &(sample, _, weight) in &edges {
            sums[sample as usize] += f64::from(weight);
            starts[sample as usize + 1] += 1;
        }
        for sample in 0..near.len() {
            starts[sample + 1] += starts[sample];
        }
        let scaled = |(sample, other, weight): (u32, u32, f32)| {
            let roots = libm::sqrt(sums[sample as usize]) * libm::sqrt(sums[other as usize]);
            (other, (f64::from(weight) / roots) as f32)
        };
        Ok(Self { starts, edges: edges.into_iter().map(scaled).collect() })
    }

    /// Spreads labels over the graph: each sample repeatedly takes the weighted sum of its neighbours, and a share of its own label.
    /// `labels` are a row for each sample.
    pub(super) fn spread(
        &self,
        labels: &[f32],
        classes: usize,
        progress: &FitProgress<'_>,
    ) -> Result<Vec<f32>, HeadError> {
        let mut spread = labels.to_vec();
        let mut next = vec![0.0; labels.len()];
        for _ in 0..ITERATIONS {
            progress.check_stop()?;
            let rows = next.chunks_exact_mut(classes).zip(labels.chunks_exact(classes));
            for ((next, label), ends) in rows.zip(self.starts.windows(2)) {
                next.fill(0.0);
                for &(other, weight) in &self.edges[ends[0]..ends[1]] {
                    let other = &spread[other as usize * classes..][..classes];
                    next.iter_mut().zip(other).for_each(|(sum, number)| *sum += weight * number);
                }
                for (number, label) in next.iter_mut().zip(label) {
                    *number = SPREAD * *number + (1.0 - SPREAD) * label;
                }
            }
            std::mem::swap(&mut spread, &mut next);
        }
        Ok(spread)
    }
}

/// Finds the nearest neighbours of each vector, nearest first; of equally near ones, the first.
fn nearest(
    vectors: &[f32],
    width: usize,
    threads: usize,
    progress: &FitProgress<'_>,
) -> Result<Vec<Vec<Near>>, HeadError> {
    let rows = vectors.len() / width;
    let squares: Vec<f32> = vectors
        .chunks_exact(width)
        .map(|vector| calmix_core::lanes::sum(vector, |number| f64::from(number) * f64::from(number)) as f32)
        .collect();
    let all = Operand::new(vectors, rows, width).transposed();
    let blocks = parallel::run(rows.div_ceil(BLOCK), threads, |block| {
        progress.check_stop()?;
        let first = block * BLOCK;
        let count = BLOCK.min(rows - first);
        let block = Operand::new(&vectors[first * width..(first + count) * width], count, width);
        let mut products = vec![0.0; count * rows];
        multiply(block, all, 0.0, &mut products);
        let mut found = Vec::with_capacity(count);
        for (row, products) in (first..).zip(products.chunks_exact(rows)) {
            found.push(nearest_of(row, products, &squares)?);
        }
        Ok::<_, HeadError>(found)
    });
    let mut near = Vec::with_capacity(rows);
    for block in blocks {
        near.extend(block?);
    }
    Ok(near)
}

/// Selects the nearest neighbours of a row from its products with all rows.
fn nearest_of(row: usize, products: &[f32], squares: &[f32]) -> Result<Vec<Near>, HeadError> {
    let mut near: Vec<Near> = Vec::with_capacity(NEIGHBOURS + 1);
    let mut farthest = f32::INFINITY;
    for (other, (product, square)) in products.iter().zip(squares).enumerate() {
        let distance = squares[row] + square - 2.0 * product;
        if !distance.is_finite() {
            return Err(HeadError::Input("a distance between two vectors is not a finite number".to_owned()));
        }
        if other == row || distance >= farthest {
            continue;
        }
        // Rounding may make the distance of copies negative.
        let distance = distance.max(0.0);
        let place = near.partition_point(|&(nearer, _)| nearer <= distance);
        near.insert(place, (distance, other as u32));
        near.truncate(NEIGHBOURS);
        if near.len() == NEIGHBOURS {
            farthest = near.last().map_or(farthest, |near| near.0);
        }
    }
    Ok(near)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use calmix_core::rng::{Domain, Seed};

    use super::*;

    fn vectors(rows: usize, width: usize) -> Vec<f32> {
        let mut stream = Seed(5).stream(Domain::Init, 0, 0);
        (0..rows * width).map(|_| stream.normal() as f32).collect()
    }

    #[test]
    fn neighbours_are_the_nearest_in_any_number_of_threads() {
        let (rows, width) = (300, 7);
        let numbers = vectors(rows, width);
        let stop = AtomicBool::new(false);
        let progress = FitProgress::new(&stop);
        let near = nearest(&numbers, width, 1, &progress).unwrap();
        assert_eq!(near, nearest(&numbers, width, 5, &progress).unwrap());
        for (row, near) in near.iter().enumerate() {
            let vector = &numbers[row * width..][..width];
            let mut others: Vec<(f64, u32)> = (0..rows)
                .filter(|&other| other != row)
                .map(|other| {
                    let other_vector = &numbers[other * width..][..width];
                    let squares = vector.iter().zip(other_vector).map(|(a, b)| f64::from(a - b).powi(2));
                    (squares.sum(), other as u32)
                })
                .collect();
            others.sort_by(|a, b| a.0.total_cmp(&b.0));
            let found: Vec<u32> = near.iter().map(|near| near.1).collect();
            let expected: Vec<u32> = others[..NEIGHBOURS].iter().map(|other| other.1).collect();
            assert_eq!(found, expected, "{row}");
        }
    }

    #[test]
    fn labels_spread_to_the_fixed_point_and_not_beyond_their_part() {
        // Two clouds far apart; the labels of one do not reach the other.
        let width = 3;
        let mut numbers = vectors(60, width);
        numbers[30 * width..].iter_mut().for_each(|number| *number += 100.0);
        let stop = AtomicBool::new(false);
        let progress = FitProgress::new(&stop);
        let graph = Graph::new(&numbers, width, 1, &progress).unwrap();
        let mut labels = vec![0.0; 60 * 2];
        labels[0] = 1.0;
        labels[2 * 7 + 1] = 1.0;
        let spread = graph.spread(&labels, 2, &progress).unwrap();
        assert!(spread[..60].iter().all(|&number| number > 0.0));
        assert!(spread[60..].iter().all(|&number| number == 0.0));
        // What spreading leaves unchanged solves (1 − α·S)·F = (1 − α)·Y; 30 steps are within 0.9³⁰ of it.
        for row in 0..30 {
            for class in 0..2 {
                let edges = &graph.edges[graph.starts[row]..graph.starts[row + 1]];
                let sum: f32 =
                    edges.iter().map(|&(other, weight)| weight * spread[2 * other as usize + class]).sum();
                let again = SPREAD * sum + (1.0 - SPREAD) * labels[2 * row + class];
                assert!((again - spread[2 * row + class]).abs() < 0.01, "{row}");
            }
        }
    }

    #[test]
    fn copies_have_finite_weights() {
        let stop = AtomicBool::new(false);
        let progress = FitProgress::new(&stop);
        for rows in [2, 5, 40] {
            let numbers = [0.6, 0.8].repeat(rows);
            let graph = Graph::new(&numbers, 2, 1, &progress).unwrap();
            assert!(graph.edges.iter().all(|&(_, weight)| weight.is_finite() && weight > 0.0));
            let mut labels = vec![0.0; rows];
            labels[0] = 1.0;
            assert!(graph.spread(&labels, 1, &progress).unwrap().iter().all(|number| number.is_finite()));
        }
        assert!(Graph::new(&[f32::MAX, 1.0, -f32::MAX, 1.0], 2, 1, &progress).is_err());
    }
}
