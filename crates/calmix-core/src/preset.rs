//! The two readings of the paper as values: what it says, and what its authors released.

use crate::method::{BaseLoss, Method};
use crate::mixup::{
    ApmFrom, Guidance, Lambda, LambdaSource, MixLoss, Mixup, PairWeight, Pairing, PseudoTarget,
};
use crate::pair::{Dissimilar, SameSource, Space};
use crate::pseudo::{Base, SoftMatch, Statistics};
use crate::schedule::MixStart;
use crate::smoothing::Smoothing;

/// `paper`: CalibrateMix over `base` as the paper defines it, for a run of `total_steps`; where the paper is
/// silent, the choice that its other sentences make likelier. These are the defaults of all settings.
pub fn paper(base: Base, total_steps: u64) -> Method {
    Method {
        base,
        mixup: Some(Mixup {
            pairing: Pairing::CalibrateMix(Guidance::default()),
            lambda: Lambda { source: LambdaSource::default(), at_least_half: false },
            start: MixStart::paper(total_steps),
            same_source: SameSource::Excluded,
            pseudo_target: PseudoTarget::Hard,
            pair_weight: PairWeight::One,
            min_confidence: None,
            loss: MixLoss::CrossEntropy,
        }),
        smoothing: Smoothing::None,
        unlabelled_weight: 1.0,
        base_loss: BaseLoss::Once,
    }
}

/// `released-code`: what the code that the authors published does. It exists for SoftMatch alone.
pub fn released_code() -> Method {
    let base = SoftMatch { statistics: Statistics::Aligned, ..SoftMatch::default() };
    Method {
        base: Base::SoftMatch(base),
        mixup: Some(Mixup {
            pairing: Pairing::CalibrateMix(Guidance {
                apm_from: ApmFrom::MixStart,
                space: Space::Pixel,
                dissimilar: Dissimilar::Count(15),
                ..Guidance::default()
            }),
            lambda: Lambda { source: LambdaSource::default(), at_least_half: false },
            // The base algorithm trains alone while `it <= 150000`.
            start: MixStart::At(150_001),
            same_source: SameSource::Allowed,
            pseudo_target: PseudoTarget::Hard,
            pair_weight: PairWeight::One,
            min_confidence: None,
            loss: MixLoss::BinaryCrossEntropy,
        }),
        smoothing: Smoothing::None,
        unlabelled_weight: 1.0,
        base_loss: BaseLoss::Twice,
    }
}
