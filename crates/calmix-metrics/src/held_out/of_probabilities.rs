//! The held-out labels of any model, from the probabilities that it gave them.

use calmix_core::matrix::{MatrixOf, Scalar};
use calmix_core::softmax::argmax;

use super::HeldOut;
use crate::checked;
use crate::error::MetricsError;

impl HeldOut {
    /// Scores labels by the probabilities of a model that was neither trained nor calibrated on them. `groups` is empty if each
    /// label is a [group](crate::groups) of its own. All labels are kept, however many there are.
    ///
    /// # Errors
    /// If labels, groups and rows do not match, or a probability is not in [0, 1].
    pub fn of_probabilities<T: Scalar>(
        probabilities: MatrixOf<'_, T>,
        labels: &[u32],
        groups: &[u32],
    ) -> Result<Self, MetricsError> {
        checked::probabilities(probabilities, labels)?;
        if !groups.is_empty() {
            checked::length("groups", labels.len(), groups.len())?;
        }
        let mut held_out = Self { group: groups.to_vec(), ..Self::default() };
        for (row, (p, &label)) in probabilities.iter().zip(labels).enumerate() {
            let right = argmax(p) == label as usize;
            held_out.add(label, right, probability_log_odds(p), p, row as u64);
        }
        Ok(held_out)
    }
}

/// Computes ln(p / (1 − p)) of the likeliest class, as [`log_odds`](crate::abstention::log_odds) does from logits. It separates rows
/// whose largest probability rounds to one as long as their others do not round to zero; zero for an empty row.
pub fn probability_log_odds<T: Scalar>(probabilities: &[T]) -> f64 {
    let predicted = argmax(probabilities);
    let Some(&top) = probabilities.get(predicted) else { return 0.0 };
    let others = probabilities.iter().enumerate().filter(|(class, _)| *class != predicted);
    let mass: f64 = others.map(|(_, &p)| p.into()).sum();
    libm::log(top.into().max(f64::MIN_POSITIVE)) - libm::log(mass.max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;
    use calmix_core::rng::{Domain, Seed};

    use super::*;
    use crate::calibrator::Calibrator;
    use crate::held_out::SetRule;

    /// The probabilities of a model lead to the guarantees that its logits lead to.
    #[test]
    fn probabilities_score_as_their_logits_do() {
        let mut stream = Seed(2).stream(Domain::Conformal, 9, 0);
        let logits: Vec<f32> = (0..900).map(|_| 3.0 * stream.normal() as f32).collect();
        let labels: Vec<u32> = (0..300).map(|_| stream.index(3) as u32).collect();
        let logits = Matrix::new(&logits, 300, 3).unwrap();
        let probabilities = Calibrator::IDENTITY.probabilities(logits).unwrap();
        let of_logits = HeldOut::score(logits, &labels, &Calibrator::IDENTITY).unwrap();
        let table = Matrix::new(&probabilities, 300, 3).unwrap();
        let found = HeldOut::of_probabilities(table, &labels, &[]).unwrap();
        assert_eq!((&found.label, &found.right), (&of_logits.label, &of_logits.right));
        assert_eq!((&found.lac, &found.aps), (&of_logits.lac, &of_logits.aps));
        for (ours, theirs) in found.answer.iter().zip(&of_logits.answer) {
            // A probability of f32 has a relative error of 6e-8, which is the absolute one of its logarithm.
            assert!((ours - theirs).abs() < 1e-6, "{ours} {theirs}");
        }
        let sets = found.sets(SetRule::LacByClass, 0.9).unwrap();
        assert_eq!(sets, of_logits.sets(SetRule::LacByClass, 0.9).unwrap());
    }

    #[test]
    fn extreme_probabilities_have_finite_scores() {
        assert!(probability_log_odds(&[1.0, 0.0, 0.0]) > probability_log_odds(&[1.0, 1e-12, 0.0]));
        assert!((probability_log_odds(&[0.2, 0.8_f64]) - 4.0_f64.ln()).abs() < 1e-12);
        assert_eq!(probability_log_odds::<f32>(&[]), 0.0);
        assert!(
            probability_log_odds(&[0.0_f32, 0.0]).is_finite() && probability_log_odds(&[1.0_f32]).is_finite()
        );
    }

    #[test]
    fn invalid_rows_are_refused() {
        let rows = [0.5, 0.5, 1.5, 0.0];
        let table = MatrixOf::new(&rows, 2, 2).unwrap();
        assert!(HeldOut::of_probabilities(table, &[0, 1], &[]).is_err());
        assert!(HeldOut::of_probabilities(table.range(0..1), &[0, 1], &[]).is_err());
        assert!(HeldOut::of_probabilities(table.range(0..1), &[2], &[]).is_err());
        assert!(HeldOut::of_probabilities(table.range(0..1), &[1], &[0, 0]).is_err());
    }
}
