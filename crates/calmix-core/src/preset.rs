//! The two readings of the paper as values: what it says, and what its authors released.

use crate::method::{BaseLoss, Method};
use crate::mixup::{ApmFrom, Guidance, MixLoss, Mixup, Pairing};
use crate::pair::{Dissimilar, SameSource, Space};
use crate::pseudo::{Base, SoftMatch, Statistics};
use crate::schedule::Start;

/// `paper`: CalibrateMix over `base` as the paper defines it; where the paper is silent, the choice that its other
/// sentences make likelier. These are the defaults of all settings.
pub fn paper(base: Base) -> Method {
    Method { base, ..Method::default() }
}

/// `released-code`: what the code that the authors published does. It exists for SoftMatch alone.
pub fn released_code() -> Method {
    let base = SoftMatch { statistics: Statistics::Aligned, ..SoftMatch::default() };
    Method {
        base: Base::SoftMatch(base),
        mixup: Mixup {
            pairing: Pairing::CalibrateMix(Guidance {
                apm_from: ApmFrom::MixStart,
                space: Space::Pixel,
                dissimilar: Dissimilar::Count(15),
                ..Guidance::default()
            }),
            // The base algorithm trains alone while `it <= 150000`.
            start: Start::at(150_001),
            same_source: SameSource::Allowed,
            loss: MixLoss::BinaryCrossEntropy,
            ..Mixup::default()
        },
        base_loss: BaseLoss::Twice,
        ..Method::default()
    }
}
