//! Any method, with any options.

use calmix_core::margin::Averaging;
use calmix_core::method::Method;
use calmix_core::method::smoothing::Smoothing;
use calmix_core::mixup::pair::{Dissimilar, SameSource, Space};
use calmix_core::mixup::split::Split;
use calmix_core::mixup::{
    Anchors, ApmFrom, Guidance, LambdaSource, MixLoss, Mixup, PairWeight, Pairing, PseudoTarget,
};
use calmix_core::preset::paper;
use calmix_core::pseudo::{
    AlignmentTarget, Base, FixMatch, FlexMatch, FreeMatch, MarginalInit, SoftMatch, Statistics,
};
use calmix_core::schedule::{Start, StartRule};
use proptest::prelude::*;

pub(crate) fn bases() -> impl Strategy<Value = Base> {
    let soft = (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(aligned, labelled, uniform)| {
        Base::SoftMatch(SoftMatch {
            statistics: if aligned { Statistics::Aligned } else { Statistics::Raw },
            target: if labelled { AlignmentTarget::Labelled } else { AlignmentTarget::Uniform },
            marginal_init: if uniform { MarginalInit::Uniform } else { MarginalInit::FirstBatch },
            momentum: 0.9,
            ..SoftMatch::default()
        })
    });
    let flex = any::<bool>()
        .prop_map(|warmup| Base::FlexMatch(FlexMatch { threshold: 0.6, warmup, ..FlexMatch::default() }));
    prop_oneof![
        Just(Base::Supervised),
        Just(Base::SupervisedPseudoMixup),
        (0.0..1.0_f64).prop_map(|threshold| Base::FixMatch(FixMatch { threshold })),
        flex,
        soft,
        any::<bool>()
            .prop_map(|clip| { Base::FreeMatch(FreeMatch { momentum: 0.9, clip, ..FreeMatch::default() }) })
    ]
}

pub(crate) fn guidances() -> impl Strategy<Value = Guidance> {
    let splits = prop_oneof![
        Just(Split::Rank),
        Just(Split::Median),
        (0.0..1.0).prop_map(|quantile| Split::Running { quantile, momentum: 0.9 })
    ];
    let spaces = prop_oneof![Just(Space::Feature), Just(Space::Pixel), Just(Space::Logit)];
    let dissimilar = prop_oneof![
        Just(Dissimilar::Any),
        (1..20_u32).prop_map(Dissimilar::Count),
        (0.0..1.0).prop_map(Dissimilar::Fraction)
    ];
    (splits, spaces, dissimilar, any::<bool>()).prop_map(|(split, space, dissimilar, exponential)| Guidance {
        averaging: if exponential { Averaging::Exponential { rho: 0.9 } } else { Averaging::default() },
        apm_from: ApmFrom::FirstStep,
        split,
        space,
        dissimilar,
    })
}

pub(crate) fn methods() -> impl Strategy<Value = Method> {
    let pairings = prop_oneof![
        3 => guidances().prop_map(Pairing::CalibrateMix),
        1 => (guidances(), any::<bool>()).prop_map(|(guidance, every)| Pairing::All {
            guidance,
            anchors: if every { Anchors::Every } else { Anchors::Batch },
        }),
        1 => Just(Pairing::Random),
        1 => Just(Pairing::Crossed)
    ];
    let lambdas = prop_oneof![
        (0.0..3.0).prop_map(LambdaSource::BetaPerGroup),
        (0.0..3.0).prop_map(LambdaSource::BetaPerSample),
        (0.0..1.0).prop_map(LambdaSource::Fixed)
    ];
    let starts = prop_oneof![
        Just(StartRule::Step { step: 0 }),
        Just(StartRule::Share { share: 0.2 }),
        Just(StartRule::Ramp { share: 0.0, full: 0.3 }),
        Just(StartRule::Utilisation { level: 0.3, momentum: 0.5, not_before: 1 })
    ];
    let smoothings =
        prop_oneof![Just(Smoothing::None), Just(Smoothing::Uniform(0.1)), Just(Smoothing::OtherClasses(0.2))];
    let targets =
        prop_oneof![Just(PseudoTarget::Hard), Just(PseudoTarget::Soft), Just(PseudoTarget::Blended)];
    let least = prop_oneof![3 => Just(0.0), 1 => Just(0.7)];
    (bases(), pairings, lambdas, starts, smoothings, least, targets, any::<[bool; 4]>()).prop_map(
        |(
            base,
            pairing,
            lambda,
            rule,
            smoothing,
            min_confidence,
            pseudo_target,
            [half, same, weighted, bce],
        )| {
            Method {
                mixup: Mixup {
                    pairing,
                    lambda,
                    at_least_half: half,
                    start: Start { rule },
                    same_source: if same { SameSource::Allowed } else { SameSource::Excluded },
                    pseudo_target,
                    pair_weight: if weighted { PairWeight::Base } else { PairWeight::One },
                    min_confidence,
                    unit_length: false,
                    max_labels_per_class: 0,
                    weight: 0.5,
                    loss: if bce { MixLoss::BinaryCrossEntropy } else { MixLoss::CrossEntropy },
                },
                smoothing,
                ..paper(base)
            }
        },
    )
}
