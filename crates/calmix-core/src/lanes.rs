//! Reductions of long rows with partial results side by side.
//!
//! A vector unit computes all lanes at once. Because the lanes are part of the definition, the result has the same
//! bits without a vector unit.

use crate::matrix::Scalar;

/// The number of partial results of a reduction that needs no more than the width of one vector unit.
const LANES: usize = 8;

/// The number of partial sums of a product: enough to hide the latency of an addition.
const DOT_LANES: usize = 32;

/// Computes Σ xᵢ·yᵢ in f32, over the shorter of the two.
pub fn dot(x: &[f32], y: &[f32]) -> f32 {
    let mut lanes = [0.0; DOT_LANES];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<DOT_LANES>(), y.as_chunks::<DOT_LANES>());
    for (x, y) in x.iter().zip(y) {
        for lane in 0..DOT_LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    for ((lane, x), y) in lanes.iter_mut().zip(x_rest).zip(y_rest) {
        *lane += x * y;
    }
    // Fold the upper half onto the lower one: log₂(DOT_LANES) dependent additions instead of DOT_LANES.
    let mut width = DOT_LANES / 2;
    while width > 0 {
        let (left, right) = lanes.split_at_mut(width);
        for (left, right) in left.iter_mut().zip(right) {
            *left += *right;
        }
        width /= 2;
    }
    lanes[0]
}

/// Computes Σ aᵢ·bᵢ in f64 with `N` partial sums; numbers beyond the last full block are added at the end.
pub fn dot_f64<const N: usize>(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; N];
    let (a_blocks, a_rest) = a.as_chunks::<N>();
    let (b_blocks, b_rest) = b.as_chunks::<N>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..N {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    lanes.into_iter().sum::<f64>() + rest
}

/// Computes Σ f(x) in f64.
pub fn sum<T: Copy>(row: &[T], f: impl Fn(T) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane += f(x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane += f(x);
    }
    lanes.into_iter().sum()
}

/// Computes Σ xᵢ·yᵢ and max xᵢ·yᵢ, for numbers that are not negative.
pub fn sum_and_max_of_products(x: &[f32], y: &[f32]) -> (f64, f32) {
    let (mut sums, mut tops) = ([0.0; LANES], [0.0; LANES]);
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    let mut add = |lane: usize, product: f32| {
        sums[lane] += f64::from(product);
        tops[lane] = if product > tops[lane] { product } else { tops[lane] };
    };
    for (x, y) in x.iter().zip(y) {
        for lane in 0..LANES {
            add(lane, x[lane] * y[lane]);
        }
    }
    for (lane, (x, y)) in x_rest.iter().zip(y_rest).enumerate() {
        add(lane, x * y);
    }
    (sums.into_iter().sum(), max(&tops))
}

/// Returns the largest number; −∞ without numbers.
pub fn max<T: Scalar>(row: &[T]) -> T {
    let larger = |a: T, b: T| if b > a { b } else { a };
    let mut lanes = [T::NEG_INFINITY; LANES];
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = larger(*lane, x);
        }
    }
    rest.iter().copied().chain(lanes).fold(T::NEG_INFINITY, larger)
}

/// Returns whether every number is finite.
pub fn all_finite(row: &[f32]) -> bool {
    const EXPONENT: u32 = 0x7F80_0000;
    // No early exit: vector units are fastest on a plain pass over the bits.
    !row.iter().fold(false, |any, x| any | (x.to_bits() & EXPONENT == EXPONENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_of_any_length() {
        for len in 0..40_u16 {
            let row: Vec<f32> = (0..len).map(|i| f32::from(i * 7 % 11) - 5.0).collect();
            assert_eq!(
                sum(&row, |x| f64::from(x) * 2.0),
                row.iter().map(|&x| f64::from(x) * 2.0).sum::<f64>()
            );
            assert_eq!(max(&row), row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            assert_eq!(
                dot(&row, &row),
                row.iter().map(|x| x * x).sum::<f32>(),
                "whole numbers have exact sums"
            );
            let positive: Vec<f32> = row.iter().map(|x| x + 5.0).collect();
            let products: Vec<f32> = positive.iter().map(|x| x * x).collect();
            let (total, top) = sum_and_max_of_products(&positive, &positive);
            assert_eq!(total, sum(&products, f64::from));
            assert_eq!(top, products.iter().copied().fold(0.0, f32::max));
            assert!(all_finite(&row));
            for at in 0..row.len() {
                for stray in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    let mut row = row.clone();
                    row[at] = stray;
                    assert!(!all_finite(&row));
                }
            }
        }
        assert!(all_finite(&[f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45, -0.0]));
    }
}
