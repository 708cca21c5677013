//! The methods of the test runs, with parameters that lead to mixed decisions already in the first steps.
#![allow(dead_code, reason = "not every test asks for everything")]

use calmix_core::loss::LogitPenalty;
use calmix_core::method::Method;
use calmix_core::method::smoothing::Smoothing;
use calmix_core::mixup::{Anchors, Mixup, Pairing};
use calmix_core::preset;
use calmix_core::pseudo::{Base, FixMatch, FlexMatch, FreeMatch, Mapping, SoftMatch};
use calmix_core::schedule::Start;

/// The first step with mixtures: some steps have to be without.
const START: u64 = 2;

/// With a threshold that about half of the rows reach while the network knows little.
pub(crate) fn fixmatch() -> Base {
    Base::FixMatch(FixMatch { threshold: 0.45 })
}

/// Likewise: no threshold of a class is below half of τ.
pub(crate) fn flexmatch() -> Base {
    Base::FlexMatch(FlexMatch { threshold: 0.8, mapping: Mapping::Linear, ..FlexMatch::default() })
}

/// With a short memory, so that its weights fall below one.
pub(crate) fn softmatch() -> Base {
    Base::SoftMatch(SoftMatch { momentum: 0.9, ..SoftMatch::default() })
}

/// With a short memory, and a fairness term that is seen in the gradient.
pub(crate) fn freematch() -> Base {
    Base::FreeMatch(FreeMatch { momentum: 0.9, fairness: 0.1, ..FreeMatch::default() })
}

/// With the penalty on logit distances, at a margin that an untrained network exceeds.
pub(crate) fn penalised(method: Method) -> Method {
    Method { logit_penalty: LogitPenalty { weight: 0.3, margin: 0.2 }, ..method }
}

/// With a mixup loss that counts half.
pub(crate) fn mixed_half(method: Method) -> Method {
    Method { mixup: Mixup { weight: 0.5, ..method.mixup }, ..method }
}

/// CalibrateMix over a base algorithm.
pub(crate) fn calibratemix(base: Base) -> Method {
    begun(preset::paper(base))
}

/// The base algorithm alone.
pub(crate) fn plain(base: Base) -> Method {
    preset::paper(base).without_mixup()
}

/// The code that the authors released.
pub(crate) fn released() -> Method {
    begun(preset::released_code())
}

/// Another choice of pairs.
pub(crate) fn paired(method: Method, pairing: Pairing) -> Method {
    Method { mixup: Mixup { pairing, ..method.mixup }, ..method }
}

/// The ablation "mixup all".
pub(crate) fn all_pairs(method: Method) -> Method {
    let all = |guidance| Pairing::All { guidance, anchors: Anchors::Every };
    paired(method, method.guidance().copied().map_or(Pairing::Random, all))
}

/// Label smoothing, and an unlabelled loss that counts half as much again.
pub(crate) fn smoothed(method: Method) -> Method {
    Method { smoothing: Smoothing::Uniform(0.1), unlabelled_weight: 1.5, ..method }
}

fn begun(method: Method) -> Method {
    Method { mixup: Mixup { start: Start::at(START), ..method.mixup }, ..method }
}

/// Every method, by a name for messages.
pub(crate) fn every() -> Vec<(&'static str, Method)> {
    let soft = calibratemix(softmatch());
    vec![
        ("supervised", plain(Base::Supervised)),
        ("supervised with CalibrateMix", calibratemix(Base::Supervised)),
        ("supervision that mixes with pseudo-labels", calibratemix(Base::SupervisedPseudoMixup)),
        ("FixMatch", plain(fixmatch())),
        ("FixMatch with CalibrateMix", calibratemix(fixmatch())),
        ("FlexMatch with CalibrateMix", calibratemix(flexmatch())),
        ("SoftMatch with CalibrateMix", soft),
        ("SoftMatch with random mixup", paired(soft, Pairing::Random)),
        ("SoftMatch with all pairs, smoothed", smoothed(all_pairs(soft))),
        ("FreeMatch", plain(freematch())),
        ("FreeMatch with CalibrateMix, penalised", penalised(calibratemix(freematch()))),
        ("FixMatch, penalised", penalised(plain(fixmatch()))),
        ("SoftMatch with half a mixup loss, penalised", penalised(mixed_half(soft))),
        ("the released code", released()),
    ]
}
