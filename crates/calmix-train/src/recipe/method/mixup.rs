//! The mixup term of a recipe.

use calmix_core::mixup::{self as core_mixup, Guidance, LambdaSource, MixLoss, PairWeight, PseudoTarget};
use calmix_core::pair::SameSource;
use calmix_core::schedule::MixStart;

use crate::recipe::field::limit::{KEPT, SHARE};
use crate::recipe::field::{choice, section};

section! {
    /// The mixup term.
    Mixup {
        /// Who is mixed with whom.
        fixed pairing: PairingName = PairingName::CalibrateMix;
        /// Where the mixup coefficient comes from.
        fixed lambda: LambdaSource;
        /// Whether λ is replaced by max(λ, 1 − λ), so that the labelled image dominates.
        fixed at_least_half: bool = false;
        /// Whether a labelled image may be mixed with its own occurrence among the unlabelled ones.
        fixed same_source: SameSource = SameSource::Excluded;
        /// What a pseudo-labelled image contributes to the target.
        fixed pseudo_target: PseudoTarget = PseudoTarget::Hard;
        /// What a pair weighs.
        fixed pair_weight: PairWeight = PairWeight::One;
        /// The confidence that a pseudo-labelled image needs to take part; 0 for none, as in Algorithm 1.
        fixed min_confidence: f64 = 0.0, SHARE;
        /// How a mixture is compared with its target.
        fixed loss: MixLoss = MixLoss::CrossEntropy;
        /// When the term begins.
        part start: Start;
        /// How difficulty and dissimilarity choose the pairs.
        #[when(pairing is PairingName::CalibrateMix | PairingName::All)]
        part guidance: Guidance;
    }
}

choice! {
    /// Who is mixed with whom.
    PairingName {
        /// Nobody: the base algorithm alone.
        None = "none",
        /// Labelled easy with unlabelled hard, labelled hard with unlabelled easy.
        CalibrateMix = "calibratemix",
        /// The ablation "mixup all": easy and hard of both kinds, in four groups.
        All = "all",
        /// Two images of the combined pool of labelled and unlabelled ones, at random.
        Random = "random",
    }
}

section! {
    /// When the mixup term begins; until then the base algorithm trains alone.
    Start {
        /// What decides.
        fixed rule: StartRule = StartRule::Share;
        /// The share of the run before it begins. "Approximately 100 epochs" of 1024 steps in 2^20: 0.09765625.
        #[when(rule is StartRule::Share | StartRule::Ramp)]
        fixed share: f64 = 0.097_656_25, SHARE;
        /// The share of the run after which a ramp has reached full weight.
        #[when(rule is StartRule::Ramp)]
        fixed full: f64 = 0.2, SHARE;
        /// The first step with the term, where a step is given.
        #[when(rule is StartRule::Step)]
        fixed step: u64 = 0;
        /// The share of unlabelled samples in use that has to be reached.
        #[when(rule is StartRule::Utilisation)]
        fixed level: f64 = 0.5, SHARE;
        /// How much of that running share each step keeps.
        #[when(rule is StartRule::Utilisation)]
        fixed momentum: f64 = 0.999, KEPT;
        /// The first step that counts for it.
        #[when(rule is StartRule::Utilisation)]
        fixed not_before: u64 = 0;
    }
}

choice! {
    /// What decides when the mixup term begins.
    StartRule {
        /// A share of the run: `share`.
        Share = "share",
        /// A step: `step`.
        Step = "step",
        /// Along half a cosine, from nothing at `share` to full weight at `full`.
        Ramp = "ramp",
        /// Once the share of unlabelled samples in use has passed `level`.
        Utilisation = "utilisation",
    }
}

impl Mixup {
    /// Resolves to core's settings, for a run of `steps` steps; `None` if mixup is off.
    pub fn resolve(&self, steps: u64) -> Option<core_mixup::Mixup> {
        let pairing = match self.pairing {
            PairingName::None => return None,
            PairingName::CalibrateMix => core_mixup::Pairing::CalibrateMix(self.guidance),
            PairingName::All => core_mixup::Pairing::All(self.guidance),
            PairingName::Random => core_mixup::Pairing::Random,
        };
        Some(core_mixup::Mixup {
            pairing,
            lambda: core_mixup::Lambda { source: self.lambda, at_least_half: self.at_least_half },
            start: self.start.resolve(steps),
            same_source: self.same_source,
            pseudo_target: self.pseudo_target,
            pair_weight: self.pair_weight,
            min_confidence: (self.min_confidence > 0.0).then_some(self.min_confidence as f32),
            loss: self.loss,
        })
    }
}

impl Start {
    /// Resolves to core's rule, for a run of `steps` steps.
    pub fn resolve(&self, steps: u64) -> MixStart {
        match self.rule {
            StartRule::Share => MixStart::At(share_of(steps, self.share)),
            StartRule::Step => MixStart::At(self.step),
            StartRule::Ramp => {
                MixStart::Ramp { from: share_of(steps, self.share), to: share_of(steps, self.full) }
            }
            StartRule::Utilisation => MixStart::Utilisation {
                level: self.level,
                momentum: self.momentum,
                not_before: self.not_before,
            },
        }
    }

    /// The first step at which the term counts, where that does not depend on the run.
    pub fn begin(&self, steps: u64) -> Option<u64> {
        match self.resolve(steps) {
            MixStart::At(step) => Some(step),
            MixStart::Ramp { from, .. } => Some(from.saturating_add(1)),
            MixStart::Utilisation { .. } => None,
        }
    }
}

/// Rounded half up.
fn share_of(steps: u64, share: f64) -> u64 {
    (steps as f64 * share + 0.5).floor() as u64
}
