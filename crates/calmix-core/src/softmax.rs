//! Probabilities and the winning class of a row of logits.

/// The class with the largest logit, the first of equals; zero for an empty row.
pub fn argmax(logits: &[f32]) -> usize {
    let mut best = 0;
    for (class, &z) in logits.iter().enumerate() {
        if z > logits[best] {
            best = class;
        }
    }
    best
}

/// Writes softmax(`logits`) into `probabilities`, which must be as long.
///
/// The exponentials are summed in f64: a thousand classes of tiny probability count in full.
pub fn softmax_into(logits: &[f32], probabilities: &mut [f32]) {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0_f64;
    for (p, &z) in probabilities.iter_mut().zip(logits) {
        *p = libm::expf(z - top);
        sum += f64::from(*p);
    }
    let scale = (1.0 / sum) as f32;
    for p in probabilities {
        *p *= scale;
    }
}

/// ln Σ exp(z) in f64, with `logits` divided by `temperature` first.
pub fn log_sum_exp(logits: &[f32], temperature: f64) -> f64 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let top = f64::from(top) / temperature;
    top + libm::log(
        logits
            .iter()
            .map(|&z| libm::exp(f64::from(z) / temperature - top))
            .sum(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argmax_takes_the_first_of_equals() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(argmax(&[]), 0);
    }

    #[test]
    fn softmax_survives_extreme_logits() {
        let mut p = [0.0; 3];
        softmax_into(&[1e38, -1e38, 1e38], &mut p);
        assert_eq!(p, [0.5, 0.0, 0.5]);
        softmax_into(&[0.0, 0.0, f32::MIN], &mut p);
        assert_eq!(p, [0.5, 0.5, 0.0]);
    }

    #[test]
    fn log_sum_exp_is_the_normaliser() {
        let z = [1.0_f32, 2.0, 0.5];
        let direct: f64 = z.iter().map(|&z| libm::exp(f64::from(z) / 2.0)).sum();
        assert!((log_sum_exp(&z, 2.0) - libm::log(direct)).abs() < 1e-14);
        assert_eq!(log_sum_exp(&[1e30, 1e30], 1.0), f64::from(1e30_f32));
    }
}
