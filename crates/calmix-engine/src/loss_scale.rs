//! Loss scaling for f16, whose smallest numbers are larger than many gradients.
//!
//! The loss is multiplied before the backward pass and the gradient divided after it. A gradient that overflows
//! halves the factor and the step is not taken; after many steps without overflow the factor doubles (Micikevicius et
//! al. 2018, with the constants of PyTorch's `GradScaler`).

use serde::{Deserialize, Serialize};

/// The factor and how long it has held. In f32 and bf16 it stays at one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossScale {
    /// What the loss is multiplied by: a power of two, so that scaling loses nothing.
    pub factor: f64,
    /// Steps since it last changed.
    pub held: u32,
    /// Whether the factor adapts.
    pub dynamic: bool,
}

impl LossScale {
    /// Steps without an overflow after which the factor doubles.
    const PATIENCE: u32 = 2_000;

    /// For precisions with the range of f32.
    pub const ONE: Self = Self { factor: 1.0, held: 0, dynamic: false };

    /// For f16.
    pub const HALF: Self = Self { factor: 65_536.0, held: 0, dynamic: true };

    /// Records a step whose gradient was finite.
    pub fn held(&mut self) {
        if self.dynamic {
            self.held += 1;
            if self.held == Self::PATIENCE {
                *self = Self { factor: self.factor * 2.0, held: 0, dynamic: true };
            }
        }
    }

    /// Records a step whose gradient was not finite. Returns whether a smaller factor can still help: if not, the
    /// training diverges and the precision is not the cause.
    pub fn overflowed(&mut self) -> bool {
        let lower = self.dynamic && self.factor > 1.0;
        if lower {
            *self = Self { factor: self.factor / 2.0, held: 0, dynamic: true };
        }
        lower
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_scale_halves_at_once_and_doubles_late() {
        let mut scale = LossScale::HALF;
        assert!(scale.overflowed());
        assert_eq!(scale.factor, 32_768.0);
        for _ in 0..1_999 {
            scale.held();
        }
        assert_eq!(scale.factor, 32_768.0);
        scale.held();
        assert_eq!((scale.factor, scale.held), (65_536.0, 0));
    }

    #[test]
    fn loss_scale_gives_up_at_one() {
        let mut scale = LossScale::HALF;
        assert_eq!((0..40).filter(|_| scale.overflowed()).count(), 16);
        let mut fixed = LossScale::ONE;
        fixed.held();
        assert!(!fixed.overflowed());
        assert_eq!(fixed, LossScale::ONE);
    }
}
