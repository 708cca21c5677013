//! The principal directions of a symmetric matrix by subspace iteration, in f64.
//!
//! A block of directions is multiplied by the matrix and made orthonormal again until its share of the trace no longer grows;
//! then it is rotated to the eigenvectors of the small matrix (Rayleigh and Ritz). The block has more directions than are kept,
//! so that the last of these converge too.

use std::sync::atomic::AtomicBool;

use calmix_core::lanes::dot_f64;
use calmix_core::rng::{Domain, Seed};

use crate::error::HeadError;
use crate::product::{Operand, multiply};
use crate::progress::check_stop;

/// The number of directions in the block beyond those that are kept.
const EXTRA: usize = 16;
/// The number of multiplications between two orthonormalisations; an orthonormalisation takes as long as several of them.
const POWER: usize = 4;
/// The relative growth of the share of the trace below which iteration ends.
const GROWTH: f64 = 1e-5;
const MAX_ITERATIONS: usize = 50;
/// The number of sweeps of Jacobi's rotations over the small matrix.
const SWEEPS: usize = 30;

/// Computes the `kept` eigenvectors with the largest eigenvalues of a symmetric matrix, the largest first, one after the other.
/// The largest component of each is positive, since the sign of an eigenvector is arbitrary.
///
/// # Errors
/// [`HeadError::Stopped`] if `stop` becomes true.
pub(super) fn directions(
    matrix: &[f64],
    width: usize,
    kept: usize,
    stop: &AtomicBool,
) -> Result<Vec<f64>, HeadError> {
    let count = (kept + EXTRA).min(width);
    let mut stream = Seed(0).stream(Domain::Init, 0, 0);
    // Rows are directions, so that each is contiguous.
    let mut block: Vec<f64> = (0..count * width).map(|_| stream.normal()).collect();
    orthonormalise(&mut block, width, stop)?;
    let mut image = vec![0.0; count * width];
    let matrix = Operand::new(matrix, width, width);
    let mut explained = 0.0;
    for _ in 0..MAX_ITERATIONS {
        multiply(Operand::new(&block, count, width), matrix, 0.0, &mut image);
        let now: f64 = block.iter().zip(&image).map(|(direction, image)| direction * image).sum();
        for _ in 1..POWER {
            check_stop(stop)?;
            std::mem::swap(&mut block, &mut image);
            multiply(Operand::new(&block, count, width), matrix, 0.0, &mut image);
        }
        std::mem::swap(&mut block, &mut image);
        orthonormalise(&mut block, width, stop)?;
        if now <= explained * (1.0 + GROWTH) {
            break;
        }
        explained = now;
    }
    multiply(Operand::new(&block, count, width), matrix, 0.0, &mut image);
    let mut small = vec![0.0; count * count];
    multiply(
        Operand::new(&image, count, width),
        Operand::new(&block, count, width).transposed(),
        0.0,
        &mut small,
    );
    let (values, vectors) = eigenvectors(small, count, stop)?;
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let rotated: Vec<f64> =
        order.iter().take(kept).flat_map(|&n| &vectors[n * count..(n + 1) * count]).copied().collect();
    let mut directions = vec![0.0; kept * width];
    multiply(Operand::new(&rotated, kept, count), Operand::new(&block, count, width), 0.0, &mut directions);
    for direction in directions.chunks_exact_mut(width) {
        let largest = direction.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
        if largest.is_some_and(|number| number < 0.0) {
            for number in direction {
                *number = -*number;
            }
        }
    }
    Ok(directions)
}

/// Orthonormalises rows, twice: after one pass, nearly parallel rows are not orthogonal because of rounding (Giraud et al. 2005).
fn orthonormalise(rows: &mut [f64], width: usize, stop: &AtomicBool) -> Result<(), HeadError> {
    for _ in 0..2 {
        let count = rows.len() / width;
        for n in 0..count {
            check_stop(stop)?;
            let (before, rest) = rows.split_at_mut(n * width);
            let row = &mut rest[..width];
            for earlier in before.chunks_exact(width) {
                let along = dot_f64::<8>(earlier, row);
                row.iter_mut().zip(earlier).for_each(|(number, earlier)| *number -= along * earlier);
            }
            let length = libm::sqrt(dot_f64::<8>(row, row)).max(f64::MIN_POSITIVE);
            for number in row {
                *number /= length;
            }
        }
    }
    Ok(())
}

/// Computes the eigenvalues and eigenvectors of a small symmetric matrix by Jacobi's rotations.
fn eigenvectors(
    mut matrix: Vec<f64>,
    size: usize,
    stop: &AtomicBool,
) -> Result<(Vec<f64>, Vec<f64>), HeadError> {
    let mut vectors = vec![0.0; size * size];
    for n in 0..size {
        vectors[n * size + n] = 1.0;
    }
    let trace: f64 = (0..size).map(|n| matrix[n * size + n].abs()).sum();
    for _ in 0..SWEEPS {
        let mut off = 0.0_f64;
        for p in 0..size {
            check_stop(stop)?;
            for q in p + 1..size {
                let across = matrix[p * size + q];
                off = off.max(across.abs());
                if across.abs() <= trace * 1e-18 {
                    continue;
                }
                let theta = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * across);
                let tangent = theta.signum() / (theta.abs() + libm::sqrt(theta * theta + 1.0));
                let cosine = 1.0 / libm::sqrt(tangent * tangent + 1.0);
                let sine = tangent * cosine;
                rotate_rows(&mut matrix, size, (p, q), (cosine, sine));
                rotate_columns(&mut matrix, size, (p, q), (cosine, sine));
                rotate_rows(&mut vectors, size, (p, q), (cosine, sine));
            }
        }
        if off <= trace * 1e-15 {
            break;
        }
    }
    let values = (0..size).map(|n| matrix[n * size + n]).collect();
    Ok((values, vectors))
}

fn rotate_rows(matrix: &mut [f64], size: usize, (p, q): (usize, usize), (cosine, sine): (f64, f64)) {
    let (before, after) = matrix.split_at_mut(q * size);
    let row_p = &mut before[p * size..(p + 1) * size];
    for (a, b) in row_p.iter_mut().zip(&mut after[..size]) {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    }
}

fn rotate_columns(matrix: &mut [f64], size: usize, (p, q): (usize, usize), (cosine, sine): (f64, f64)) {
    for row in matrix.chunks_exact_mut(size) {
        (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
    }
}
