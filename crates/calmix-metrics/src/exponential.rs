//! Exponentials of rows of logits in f64, in a form that the compiler turns into vector code.
//!
//! Only plain operations in a fixed order, as in [`lanes`]: the same bits on every machine, with vector
//! units of any width or none.

use calmix_core::lanes;
use calmix_core::matrix::Scalar;

/// The number of exponentials that are computed before they are added: enough for long vectors, few enough for the stack.
const BLOCK: usize = 64;
/// The block size for short rows: clearing a longer buffer would take as long as the exponentials.
const SHORT: usize = 16;

/// The number of partial sums.
const LANES: usize = 8;

/// A row of logits relative to its largest one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelativeRow<'a, T> {
    row: &'a [T],
    top: T,
}

/// Sums over the classes c of a row, with d = logit − largest logit and w = exp(β·d).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moments {
    /// Σ w, at least one.
    pub(crate) mass: f64,
    /// Σ w·d / Σ w.
    pub(crate) mean: f64,
    /// Σ w·d² / Σ w − mean².
    pub(crate) variance: f64,
}

impl<'a, T: Scalar> RelativeRow<'a, T> {
    pub(crate) fn new(row: &'a [T]) -> Self {
        Self { row, top: lanes::max(row) }
    }

    /// Returns the logit of a class minus the largest one; zero for a class that does not exist.
    pub(crate) fn below_top(&self, class: usize) -> f64 {
        self.row.get(class).map_or(0.0, |z| z.minus(self.top))
    }

    /// Computes Σ exp(β·d), at least one, from the largest logit itself; zero for an empty row.
    pub(crate) fn mass(&self, beta: f64) -> f64 {
        if self.row.len() <= SHORT { self.mass_by::<SHORT>(beta) } else { self.mass_by::<BLOCK>(beta) }
    }

    fn mass_by<const PART: usize>(&self, beta: f64) -> f64 {
        let mut sums = [0.0; LANES];
        let mut weights = [0.0; PART];
        for part in self.row.chunks(PART) {
            self.weights(part, beta, &mut weights);
            add(&mut sums, &weights[..part.len()]);
        }
        sums.into_iter().sum()
    }

    /// Computes the mass, the mean and the variance of d under softmax(β·row).
    pub(crate) fn moments(&self, beta: f64) -> Moments {
        if self.row.len() <= SHORT { self.moments_by::<SHORT>(beta) } else { self.moments_by::<BLOCK>(beta) }
    }

    fn moments_by<const PART: usize>(&self, beta: f64) -> Moments {
        let mut mass = [0.0; LANES];
        let mut first = [0.0; LANES];
        let mut second = [0.0; LANES];
        let mut weights = [0.0; PART];
        let mut products = [0.0; PART];
        let mut squares = [0.0; PART];
        for part in self.row.chunks(PART) {
            self.weights(part, beta, &mut weights);
            let products = &mut products[..part.len()];
            let squares = &mut squares[..part.len()];
            for (((product, square), weight), z) in
                products.iter_mut().zip(&mut *squares).zip(&weights).zip(part)
            {
                let below = z.minus(self.top);
                *product = weight * below;
                *square = *product * below;
            }
            add(&mut mass, &weights[..part.len()]);
            add(&mut first, products);
            add(&mut second, squares);
        }
        let mass: f64 = mass.into_iter().sum();
        let mean = first.into_iter().sum::<f64>() / mass;
        let variance = (second.into_iter().sum::<f64>() / mass - mean * mean).max(0.0);
        Moments { mass, mean, variance }
    }

    /// Writes softmax(β·row) into `probabilities`, which must have the same length.
    pub(crate) fn softmax_into(&self, beta: f64, probabilities: &mut [T]) {
        let sum = self.mass(beta);
        let mut weights = [0.0; BLOCK];
        for (part, into) in self.row.chunks(BLOCK).zip(probabilities.chunks_mut(BLOCK)) {
            self.weights(part, beta, &mut weights);
            for (p, weight) in into.iter_mut().zip(weights) {
                *p = T::from_f64(weight / sum);
            }
        }
    }

    /// Writes exp(β·d) of a part of the row into the beginning of `weights`, which has room for it.
    #[inline]
    fn weights(&self, part: &[T], beta: f64, weights: &mut [f64]) {
        for (weight, z) in weights.iter_mut().zip(part) {
            *weight = exp_of_negative(beta * z.minus(self.top));
        }
    }
}

/// Adds numbers to partial sums, lane by lane.
#[inline]
fn add(sums: &mut [f64; LANES], numbers: &[f64]) {
    let (blocks, rest) = numbers.as_chunks::<LANES>();
    for block in blocks {
        for (sum, x) in sums.iter_mut().zip(block) {
            *sum += x;
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += x;
    }
}

/// Returns 1/T, finite even for the smallest temperature.
pub(crate) fn inverse(temperature: f64) -> f64 {
    (1.0 / temperature).min(f64::MAX)
}

/// Computes −ln of the probability of `class` under softmax(`logits` / `temperature`), relative to the largest logit, so
/// that it is accurate for any confidence. Zero for a class that does not exist.
pub(crate) fn negative_log_likelihood<T: Scalar>(logits: &[T], class: usize, temperature: f64) -> f64 {
    let row = RelativeRow::new(logits);
    if class >= logits.len() {
        return 0.0;
    }
    libm::log(row.mass(inverse(temperature))) - row.below_top(class) / temperature
}

/// Computes eˣ for x ≤ 0 with an error below one unit in the last place; zero below −708, where f64 has no normal numbers.
///
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2, and eʳ = 1 + r + r²·q(r). The polynomial q interpolates at the ten Chebyshev nodes of
/// that range, and 1 + r + r²·q(r) is within 1.6e-17 of eʳ.
#[inline]
pub(crate) fn exp_of_negative(x: f64) -> f64 {
    // Adding 1.5·2⁵² rounds to a whole number, which is then in the low bits; subtracting it again gives the rounded value.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts, the first of 33 bits, so that n times it is exact.
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const Q: [f64; 10] = [
        2.510_037_592_470_971_7e-8,
        2.762_007_599_981_065e-7,
        2.755_726_848_011_633_3e-6,
        2.480_152_132_211_682_5e-5,
        1.984_126_986_304_067e-4,
        1.388_888_891_719_688_1e-3,
        8.333_333_333_330_065e-3,
        4.166_666_666_662_416_4e-2,
        0.166_666_666_666_666_69,
        0.500_000_000_000_000_1,
    ];
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let mut q = Q[0];
    for coefficient in &Q[1..] {
        q = q * r + coefficient;
    }
    let power_of_two = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let polynomial = 1.0 + (r + r * r * q);
    if x < -708.0 { 0.0 } else { polynomial * power_of_two }
}

#[cfg(test)]
mod tests;
