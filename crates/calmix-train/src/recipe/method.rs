//! The method: a base algorithm, the mixup term, and how targets are smoothed.
//!
//! Every question that the paper leaves open is a key here. What the words mean is documented, with the paper's
//! sentences, in [`calmix_core`], whose [`Method`](calmix_core::method::Method) a recipe
//! [comes to](Method::resolve).

mod mixup;

use calmix_core::method::{BaseLoss, Method as CoreMethod};
use calmix_core::pseudo::{self, AlignmentTarget, Mapping, MarginalInit, Statistics};
use calmix_core::smoothing;

pub use mixup::{Averaging, Dissimilarity, Guidance, Lambda, Mixup, Pairing, Split, Start, StartRule};

use super::field::{choice, section, words};
use super::limit::{KEPT, SHARE, from};

section! {
    /// The method.
    Method {
        /// The algorithm underneath.
        fixed base: Base = Base::FixMatch;
        /// λ_U: the weight of the unlabelled loss.
        fixed unlabelled_weight: f64 = 1.0, from(0.0);
        /// How often the base loss counts while the mixup term is on.
        fixed base_loss: BaseLoss = BaseLoss::Once;
        /// How all targets are smoothed: labelled, pseudo-labelled and mixed.
        fixed smoothing: Smoothing = Smoothing::None;
        /// ε: how much of a smoothed target is given away; the paper applies it "with a factor of γ = 0.1".
        fixed epsilon: f64 = 0.1, SHARE;
        /// FixMatch's settings.
        part fixmatch: FixMatch = FixMatch::default();
        /// FlexMatch's settings.
        part flexmatch: FlexMatch = FlexMatch::default();
        /// SoftMatch's settings.
        part softmatch: SoftMatch = SoftMatch::default();
        /// The mixup term.
        part mixup: Mixup = Mixup::default();
    }
}

choice! {
    /// The algorithm underneath.
    Base {
        /// Labelled samples only.
        Supervised = "supervised",
        /// A fixed threshold on the confidence.
        FixMatch = "fixmatch",
        /// A threshold per class that follows how well the class is learnt.
        FlexMatch = "flexmatch",
        /// A weight that falls off smoothly below the mean confidence.
        SoftMatch = "softmatch",
    }
}

choice! {
    /// How targets are smoothed.
    Smoothing {
        /// Not at all.
        None = "none",
        /// (1 − ε)·y + ε/C: the paper's, after Müller et al.
        Uniform = "uniform",
        /// 1 − ε for the class itself, ε/(C − 1) for each other: USB's.
        OtherClasses = "other-classes",
    }
}

section! {
    /// FixMatch's settings.
    FixMatch {
        /// ω in the paper, τ elsewhere: the confidence from which a pseudo-label counts.
        fixed threshold: f64 = 0.95, SHARE;
    }
}

section! {
    /// FlexMatch's settings.
    FlexMatch {
        /// τ: the confidence from which a sample counts as learnt, and the highest threshold of a class.
        fixed threshold: f64 = 0.95, SHARE;
        /// From how well a class is learnt to its threshold.
        fixed mapping: Mapping = Mapping::Convex;
        /// Whether samples without a confident label count in the normaliser (`thresh_warmup` elsewhere).
        fixed warmup: bool = true;
    }
}

section! {
    /// SoftMatch's settings.
    SoftMatch {
        /// n_σ: how many standard deviations wide the fall-off is.
        fixed n_sigma: f64 = 2.0, from(0.0);
        /// How much of the running statistics each step keeps.
        fixed momentum: f64 = 0.999, KEPT;
        /// What the mean and the variance of the confidence are taken of.
        fixed statistics: Statistics = Statistics::Raw;
        /// What the predictions are aligned to.
        fixed target: AlignmentTarget = AlignmentTarget::Uniform;
        /// Where the running class marginal starts.
        fixed marginal_init: MarginalInit = MarginalInit::FirstBatch;
    }
}

words! {
    BaseLoss {
        Once = "once": "Once: L = L_L + λ_U·L_U + L_mix, as in the paper.",
        Twice = "twice": "In each of two passes, as in the released code.",
    }
    Mapping {
        Convex = "convex": "β/(2 − β), FlexMatch's own.",
        Linear = "linear": "(β + 1)/2.",
        LowLimit = "low-limit": "1/(2 − β).",
        Concave = "concave": "(ln(β + 1) + ½)/(ln 2 + ½).",
    }
    Statistics {
        Raw = "raw": "The probabilities as predicted: SoftMatch's paper and TorchSSL.",
        Aligned = "aligned": "The aligned probabilities: USB, and so the released code.",
    }
    AlignmentTarget {
        Uniform = "uniform": "1/C each.",
        Labelled = "labelled": "The running marginal of the predictions on labelled samples.",
    }
    MarginalInit {
        FirstBatch = "first-batch": "The first batch's mean: USB.",
        Uniform = "uniform": "1/C each: TorchSSL.",
    }
}

impl Method {
    /// What this comes to in a run of `steps` steps.
    pub fn resolve(&self, steps: u64) -> CoreMethod {
        CoreMethod {
            base: self.resolve_base(),
            mixup: self.mixup.resolve(steps),
            smoothing: match self.smoothing {
                Smoothing::None => smoothing::Smoothing::None,
                Smoothing::Uniform => smoothing::Smoothing::Uniform(self.epsilon),
                Smoothing::OtherClasses => smoothing::Smoothing::OtherClasses(self.epsilon),
            },
            unlabelled_weight: self.unlabelled_weight,
            base_loss: self.base_loss,
        }
    }

    fn resolve_base(&self) -> pseudo::Base {
        match self.base {
            Base::Supervised => pseudo::Base::Supervised,
            Base::FixMatch => {
                pseudo::Base::FixMatch(pseudo::FixMatch { threshold: self.fixmatch.threshold as f32 })
            }
            Base::FlexMatch => pseudo::Base::FlexMatch(pseudo::FlexMatch {
                threshold: self.flexmatch.threshold as f32,
                mapping: self.flexmatch.mapping,
                warmup: self.flexmatch.warmup,
            }),
            Base::SoftMatch => pseudo::Base::SoftMatch(pseudo::SoftMatch {
                n_sigma: self.softmatch.n_sigma,
                momentum: self.softmatch.momentum,
                statistics: self.softmatch.statistics,
                target: self.softmatch.target,
                marginal_init: self.softmatch.marginal_init,
            }),
        }
    }
}
