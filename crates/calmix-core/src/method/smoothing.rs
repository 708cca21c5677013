//! Label smoothing: a little probability for every class, on any target.
//!
//! Both forms are affine and keep the sum of a target, so smoothing and mixing can be done in either order.

use crate::settings::limit::SHARE;
use crate::settings::rule;

rule! {
    /// How targets are smoothed. Smoothing applies to targets only, never to masks, weights or margins.
    Smoothing {
        /// No smoothing.
        None = "none",
        /// (1 − ε)·y + ε/C, as in the paper (after Müller et al.).
        ///
        /// 0.91 and 0.01 at C = 10 and the paper's ε = 0.1.
        Uniform(epsilon: f64) = "uniform",
        /// 1 − ε for the class itself, ε/(C − 1) for each other class, as in USB.
        ///
        /// 0.90 and 0.0111 at C = 10 and ε = 0.1.
        OtherClasses(epsilon: f64) = "other-classes",
    }
    SmoothingKeys {
        smoothing: SmoothingWord = None;
        /// ε: the share of the target that is spread over classes; the paper applies it "with a factor of γ = 0.1".
        epsilon: f64 = 0.1, SHARE;
    }
}

impl Smoothing {
    /// Returns a smoothed hard target: the value at its class and the value at every other class.
    pub fn on_off(self, classes: usize) -> (f64, f64) {
        let (scale, shift) = self.affine(classes);
        (scale + shift, shift)
    }

    /// Smooths a target in place.
    pub fn apply(self, target: &mut [f32]) {
        if self == Self::None {
            return;
        }
        let (scale, shift) = self.affine(target.len());
        for y in target {
            *y = (scale * f64::from(*y) + shift) as f32;
        }
    }

    /// Returns `(scale, shift)` such that a smoothed target is `scale·y + shift`.
    fn affine(self, classes: usize) -> (f64, f64) {
        match self {
            Self::None => (1.0, 0.0),
            Self::Uniform(epsilon) => (1.0 - epsilon, epsilon / classes.max(1) as f64),
            Self::OtherClasses(_) if classes < 2 => (1.0, 0.0),
            Self::OtherClasses(epsilon) => {
                let share = epsilon / (classes - 1) as f64;
                (1.0 - epsilon - share, share)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: (f64, f64), b: (f64, f64)) -> bool {
        (a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12
    }

    #[test]
    fn both_forms_at_ten_classes() {
        assert!(close(Smoothing::Uniform(0.1).on_off(10), (0.91, 0.01)));
        assert!(close(Smoothing::OtherClasses(0.1).on_off(10), (0.9, 0.1 / 9.0)));
        assert!(close(Smoothing::None.on_off(10), (1.0, 0.0)));
        assert!(close(Smoothing::OtherClasses(0.1).on_off(1), (1.0, 0.0)));
        assert_eq!(Smoothing::Uniform(0.1).on_off(1).0, 1.0);
    }

    #[test]
    fn soft_targets_keep_their_sum() {
        for smoothing in [Smoothing::None, Smoothing::Uniform(0.1), Smoothing::OtherClasses(0.3)] {
            let mut target = [0.25, 0.0, 0.75, 0.0];
            smoothing.apply(&mut target);
            assert!((target.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{smoothing:?}: {target:?}");
        }
        let mut hard = [0.0, 1.0];
        Smoothing::OtherClasses(0.2).apply(&mut hard);
        assert_eq!(hard, [0.2, 0.8]);
    }
}
