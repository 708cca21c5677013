//! The two readings of the paper as values: its text, and the code that its authors released.

use crate::method::{BaseLoss, Method};
use crate::mixup::pair::{Dissimilar, SameSource, Space};
use crate::mixup::{ApmFrom, Guidance, MixLoss, Mixup, Pairing};
use crate::pseudo::{Base, SoftMatch, Statistics};
use crate::schedule::Start;

/// Returns the preset `paper`: CalibrateMix over `base` as the paper defines it and, where the paper leaves a choice open,
/// the more likely reading. These are the defaults of all settings.
pub fn paper(base: Base) -> Method {
    Method { base, ..Method::default() }
}

/// Returns the preset `released-code`: the behaviour of the code that the authors published. It exists only for SoftMatch.
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
