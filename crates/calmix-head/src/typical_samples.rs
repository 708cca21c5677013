//! Which samples to label first: the one nearest to the centre of each cluster.
//!
//! Clusters of k-means spread the labels over all kinds of samples, so that few classes are left without one. The sample with the
//! nearest neighbours would be more typical still, but in a cluster of two classes it may belong to the wrong one: with 20 labels of
//! Fashion-MNIST it leaves 0.7 classes without a label, the nearest to the centre none (docs/study/labelling.md). Labels that are
//! chosen like this train better heads than random ones, and say less about new samples: no guarantee may rest on them.

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_core::rng::{Domain, Seed};

use crate::error::HeadError;
use crate::product::{Operand, multiply};
use crate::progress::check_stop;

/// Dimensions that clusters are formed in: those with the most variance. More add noise.
const MAX_DIMENSIONS: usize = 64;
const MAX_ITERATIONS: usize = 100;
/// Rows whose products are computed at once.
const BLOCK: usize = 512;

/// Chooses `count` rows that are not among `labelled`: the one nearest to the centre of each of the largest clusters, of which those
/// without a labelled row come first. There are as many clusters as labelled and chosen rows. The rows are in the order of the choice.
///
/// # Errors
/// If a number is not finite; [`HeadError::Stopped`] if `stop` becomes true.
pub fn typical_rows(
    vectors: Matrix<'_>,
    labelled: &[usize],
    count: usize,
    seed: Seed,
    stop: &AtomicBool,
) -> Result<Vec<usize>, HeadError> {
    let rows = UnitRows::new(vectors)?;
    let mut is_labelled = vec![false; rows.count];
    labelled.iter().filter(|&&row| row < rows.count).for_each(|&row| is_labelled[row] = true);
    let free = is_labelled.iter().filter(|is_labelled| !**is_labelled).count();
    let count = count.min(free);
    if count == 0 {
        return Ok(Vec::new());
    }
    let clusters = rows.clusters((labelled.len() + count).min(rows.count), seed, stop)?;
    let labels_in = |members: &[usize]| members.iter().filter(|&&row| is_labelled[row]).count();
    let mut order: Vec<&Cluster> = clusters.iter().filter(|cluster| !cluster.members.is_empty()).collect();
    order.sort_by_key(|Cluster { members, .. }| {
        (labels_in(members), std::cmp::Reverse(members.len()), members[0])
    });
    let mut ranked = Vec::with_capacity(order.len());
    for Cluster { members, centre } in order {
        check_stop(stop)?;
        let mut by_distance = rows.by_distance(members, centre);
        by_distance.retain(|&row| !is_labelled[row]);
        ranked.push(by_distance.into_iter());
        if ranked.len() == count {
            break;
        }
    }
    // Clusters with nothing left to choose, as around copies, leave room for second samples of the others.
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        let before = chosen.len();
        let missing = count - before;
        chosen.extend(ranked.iter_mut().filter_map(Iterator::next).take(missing));
        if chosen.len() == before {
            break;
        }
    }
    Ok(chosen)
}

/// A cluster of rows.
struct Cluster {
    /// The rows, ascending.
    members: Vec<usize>,
    centre: Vec<f32>,
}

/// Vectors of unit length in the first dimensions.
struct UnitRows {
    numbers: Vec<f32>,
    count: usize,
    width: usize,
}

impl UnitRows {
    fn new(vectors: Matrix<'_>) -> Result<Self, HeadError> {
        let width = vectors.width().min(MAX_DIMENSIONS);
        let mut numbers = Vec::with_capacity(vectors.rows() * width);
        for (row, vector) in vectors.iter().enumerate() {
            let vector = &vector[..width];
            let square: f32 = vector.iter().map(|number| number * number).sum();
            if !square.is_finite() {
                return Err(HeadError::Input(format!(
                    "row {row}: a number of its vector is infinite or not a number"
                )));
            }
            let scale = if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 };
            numbers.extend(vector.iter().map(|number| number * scale));
        }
        Ok(Self { numbers, count: vectors.rows(), width })
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.numbers[row * self.width..][..self.width]
    }

    /// Divides the rows into clusters by k-means, which starts from centres drawn as k-means++ does. A cluster may be empty.
    fn clusters(&self, count: usize, seed: Seed, stop: &AtomicBool) -> Result<Vec<Cluster>, HeadError> {
        let mut centres = self.first_centres(count, seed, stop)?;
        let mut cluster_of = vec![usize::MAX; self.count];
        for _ in 0..MAX_ITERATIONS {
            let moved = self.assign(&centres, &mut cluster_of, stop)?;
            if moved == 0 {
                break;
            }
            self.move_centres(&cluster_of, &mut centres);
        }
        let mut clusters: Vec<Cluster> = centres
            .chunks_exact(self.width)
            .map(|centre| Cluster { members: Vec::new(), centre: centre.to_vec() })
            .collect();
        for (row, &cluster) in cluster_of.iter().enumerate() {
            clusters[cluster].members.push(row);
        }
        Ok(clusters)
    }

    /// Draws the first centres: each row with a probability proportional to its squared distance from those before.
    fn first_centres(&self, count: usize, seed: Seed, stop: &AtomicBool) -> Result<Vec<f32>, HeadError> {
        let mut stream = seed.stream(Domain::Cluster, 0, 0);
        let mut centres = Vec::with_capacity(count * self.width);
        let mut distances = vec![f64::INFINITY; self.count];
        let mut next = stream.index(self.count);
        for _ in 0..count {
            check_stop(stop)?;
            let centre = self.row(next).to_vec();
            for (row, distance) in distances.iter_mut().enumerate() {
                *distance = distance.min(f64::from(squared_distance(self.row(row), &centre)));
            }
            centres.extend(centre);
            let total: f64 = distances.iter().sum();
            let mut left = stream.uniform() * total;
            // If all rows are copies of centres, any row will do.
            let drawn = distances.iter().position(|distance| {
                left -= distance;
                left < 0.0
            });
            next = drawn.unwrap_or_else(|| stream.index(self.count));
        }
        Ok(centres)
    }

    /// Assigns each row to the nearest centre, the first of equals; returns how many changed.
    fn assign(
        &self,
        centres: &[f32],
        cluster_of: &mut [usize],
        stop: &AtomicBool,
    ) -> Result<usize, HeadError> {
        let count = centres.len() / self.width;
        let centre = |n: usize| &centres[n * self.width..][..self.width];
        let half_squares: Vec<f32> = (0..count).map(|n| 0.5 * dot(centre(n), centre(n))).collect();
        let centres = Operand::new(centres, count, self.width).transposed();
        let mut products = vec![0.0; BLOCK * count];
        let mut changed = 0;
        for (block, rows) in self.numbers.chunks(BLOCK * self.width).enumerate() {
            check_stop(stop)?;
            let n = rows.len() / self.width;
            let products = &mut products[..n * count];
            multiply(Operand::new(rows, n, self.width), centres, 0.0, products);
            for (row, products) in products.chunks_exact(count).enumerate() {
                let mut best = (0, f32::NEG_INFINITY);
                for (cluster, (product, half_square)) in products.iter().zip(&half_squares).enumerate() {
                    if product - half_square > best.1 {
                        best = (cluster, product - half_square);
                    }
                }
                let cluster = &mut cluster_of[block * BLOCK + row];
                changed += usize::from(*cluster != best.0);
                *cluster = best.0;
            }
        }
        Ok(changed)
    }

    /// Moves each centre to the mean of its rows; one without rows stays.
    fn move_centres(&self, cluster_of: &[usize], centres: &mut [f32]) {
        let count = centres.len() / self.width;
        let mut sums = vec![0.0_f64; centres.len()];
        let mut sizes = vec![0_usize; count];
        for (row, &cluster) in cluster_of.iter().enumerate() {
            sizes[cluster] += 1;
            let sum = &mut sums[cluster * self.width..][..self.width];
            sum.iter_mut().zip(self.row(row)).for_each(|(sum, &number)| *sum += f64::from(number));
        }
        for (cluster, &size) in sizes.iter().enumerate().filter(|(_, size)| **size > 0) {
            let range = cluster * self.width..(cluster + 1) * self.width;
            for (centre, sum) in centres[range.clone()].iter_mut().zip(&sums[range]) {
                *centre = (sum / size as f64) as f32;
            }
        }
    }

    /// Orders the members of a cluster by their distance from its centre, the nearest first.
    fn by_distance(&self, members: &[usize], centre: &[f32]) -> Vec<usize> {
        let mut order: Vec<(f32, usize)> =
            members.iter().map(|&row| (squared_distance(self.row(row), centre), row)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, row)| row).collect()
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `per_group` points around each of the unit vectors of `groups` axes.
    fn groups(groups: usize, per_group: usize) -> Vec<f32> {
        let mut numbers = Vec::new();
        let mut stream = Seed(7).stream(Domain::Cluster, 1, 0);
        for group in 0..groups {
            for _ in 0..per_group {
                numbers.extend((0..groups).map(|axis| {
                    let noise = 0.2 * stream.normal() as f32;
                    if axis == group { 1.0 + noise } else { noise }
                }));
            }
        }
        numbers
    }

    fn chosen(numbers: &[f32], width: usize, labelled: &[usize], count: usize, seed: u64) -> Vec<usize> {
        let vectors = Matrix::new(numbers, numbers.len() / width, width).unwrap();
        typical_rows(vectors, labelled, count, Seed(seed), &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn each_group_gives_a_sample() {
        let numbers = groups(5, 40);
        let mut found = 0;
        for seed in 0..20 {
            let rows = chosen(&numbers, 5, &[], 5, seed);
            let mut groups: Vec<usize> = rows.iter().map(|row| row / 40).collect();
            groups.sort_unstable();
            found += usize::from(groups == [0, 1, 2, 3, 4]);
        }
        // k-means may end with two centres in one group.
        assert!(found >= 12, "{found} of 20");
    }

    #[test]
    fn sample_nearest_to_the_centre_is_chosen() {
        // 21 directions from −20 to 20 degrees.
        let angles = (0..21).map(|n| 2.0 * f64::from(n) - 20.0).map(f64::to_radians);
        let numbers: Vec<f32> = angles.flat_map(|angle| [angle.cos() as f32, angle.sin() as f32]).collect();
        for seed in 0..5 {
            assert_eq!(chosen(&numbers, 2, &[], 1, seed), [10]);
        }
    }

    #[test]
    fn groups_with_labels_come_last() {
        let numbers = groups(4, 30);
        let labelled = [3, 33];
        for seed in 0..10 {
            let rows = chosen(&numbers, 4, &labelled, 2, seed);
            let groups: Vec<usize> = rows.iter().map(|row| row / 30).collect();
            assert!(groups.contains(&2) || groups.contains(&3), "{rows:?}");
            assert!(rows.iter().all(|row| !labelled.contains(row)));
        }
    }

    #[test]
    fn copies_and_few_rows_are_chosen_once() {
        let same = [1.0, 0.0].repeat(6);
        let mut rows = chosen(&same, 2, &[0], 9, 1);
        rows.sort_unstable();
        assert_eq!(rows, [1, 2, 3, 4, 5]);
        assert_eq!(chosen(&same, 2, &[0, 1, 2, 3, 4, 5], 3, 1), [0; 0]);
        assert_eq!(chosen(&[0.0, 0.0, 1.0, 0.0], 2, &[], 1, 1).len(), 1);
    }

    #[test]
    fn vectors_that_are_not_finite_are_refused() {
        let numbers = [1.0, f32::NAN];
        let vectors = Matrix::new(&numbers, 1, 2).unwrap();
        let error = typical_rows(vectors, &[], 1, Seed(0), &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().starts_with("row 0:"), "{error}");
    }
}
