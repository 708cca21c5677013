//! Probabilities and the predicted class of a row of logits.

use crate::lanes;
use crate::matrix::Scalar;

/// The numbers per block of a pass over a row.
const BLOCK: usize = 128;

/// Returns the class with the largest logit, the first of equals; zero for an empty row.
pub fn argmax<T: Scalar>(logits: &[T]) -> usize {
    let top = lanes::max(logits);
    // Whole blocks first, without an early exit, which vector units compare faster than numbers one by one.
    #[allow(clippy::needless_bitwise_bool)]
    let has_top = |block: &[T]| block.iter().fold(false, |found, &z| found | (z == top));
    let before = logits.chunks(BLOCK).take_while(|block| !has_top(block)).count() * BLOCK;
    let block = logits.get(before..).unwrap_or_default();
    block.iter().position(|&z| z == top).map_or(0, |place| before + place)
}

/// Writes softmax(`logits`) into `probabilities`, which must have the same length.
///
/// The exponentials are summed in f64, so that a thousand tiny probabilities are not lost to rounding.
pub fn softmax_into(logits: &[f32], probabilities: &mut [f32]) {
    exponentials(logits, lanes::max(logits), probabilities);
    let scale = (1.0 / lanes::sum(probabilities, f64::from)) as f32;
    for p in probabilities {
        *p *= scale;
    }
}

/// Returns the largest probability of softmax(`logits`); zero for an empty row.
pub fn confidence(logits: &[f32]) -> f32 {
    let top = lanes::max(logits);
    let mut block = [0.0; BLOCK];
    let mut sum = 0.0;
    for logits in logits.chunks(block.len()) {
        let block = &mut block[..logits.len()];
        exponentials(logits, top, block);
        sum += lanes::sum(block, f64::from);
    }
    if sum > 0.0 { (1.0 / sum) as f32 } else { 0.0 }
}

fn exponentials(logits: &[f32], top: f32, into: &mut [f32]) {
    for (e, &z) in into.iter_mut().zip(logits) {
        *e = exp_of_negative(z - top);
    }
}

/// Computes eˣ for x ≤ 0 with a relative error of at most 2⁻²³; zero below −87, where f32 has no normal numbers.
///
/// Plain multiplications and additions: the compiler turns it into vector code, and it has the same bits on
/// every machine. x = n·ln 2 + r, and eʳ by its Taylor polynomial on |r| ≤ ln 2 / 2.
#[inline]
pub fn exp_of_negative(x: f32) -> f32 {
    // Adding 1.5·2²³ rounds to a whole number, which is then in the low bits; subtracting it again gives the rounded value.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 is split in two parts, so that n times the first is exact.
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let mut polynomial = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        polynomial = polynomial * r + coefficient;
    }
    let power_of_two = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { polynomial * power_of_two }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argmax_takes_the_first_of_equals() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(argmax::<f32>(&[]), 0);
        for place in [0, 1, 127, 128, 255, 256, 299] {
            let mut row = [0.0_f64; 300];
            row[place..].fill(2.0);
            assert_eq!(argmax(&row), place);
        }
    }

    #[test]
    fn exp_of_negative_is_accurate() {
        let mut worst = 0.0_f64;
        for i in 0..=870_000 {
            let x = i as f32 * -1e-4;
            let exact = libm::exp(f64::from(x));
            worst = worst.max((f64::from(exp_of_negative(x)) / exact - 1.0).abs());
        }
        assert!(worst < (-23.0_f64).exp2(), "off by {worst}");
        assert_eq!((exp_of_negative(0.0), exp_of_negative(-88.0)), (1.0, 0.0));
        assert_eq!((exp_of_negative(f32::MIN), exp_of_negative(f32::NEG_INFINITY)), (0.0, 0.0));
    }

    #[test]
    fn softmax_survives_extreme_logits() {
        let mut p = [0.0; 3];
        softmax_into(&[1e38, -1e38, 1e38], &mut p);
        assert_eq!(p, [0.5, 0.0, 0.5]);
        softmax_into(&[0.0, 0.0, f32::MIN], &mut p);
        assert_eq!(p, [0.5, 0.5, 0.0]);
        assert_eq!((confidence(&[0.0, 0.0, f32::MIN]), confidence(&[])), (0.5, 0.0));
    }
}
