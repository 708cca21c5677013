//! The mixup term of a recipe.

use calmix_core::margin;
use calmix_core::mixup::{self as core_mixup, ApmFrom, LambdaSource, MixLoss, PairWeight, PseudoTarget};
use calmix_core::pair::{Dissimilar, SameSource, Space};
use calmix_core::schedule::MixStart;
use calmix_core::split;

use crate::recipe::field::{choice, section, words};
use crate::recipe::limit::{KEPT, SHARE, SOME, SOME_SHARE, from};

section! {
    /// The mixup term.
    Mixup {
        /// Who is mixed with whom.
        fixed pairing: Pairing = Pairing::CalibrateMix;
        /// Where the mixup coefficient comes from.
        fixed lambda: Lambda = Lambda::BetaPerGroup;
        /// α of the Beta distribution.
        fixed alpha: f64 = 0.4, from(0.0);
        /// γ, where the coefficient is fixed.
        fixed gamma: f64 = 0.4, SHARE;
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
        part start: Start = Start::default();
        /// How difficulty and dissimilarity choose the pairs.
        part guidance: Guidance = Guidance::default();
    }
}

choice! {
    /// Who is mixed with whom.
    Pairing {
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

choice! {
    /// Where the mixup coefficient comes from.
    Lambda {
        /// One draw of Beta(α, α) for each kind of pair: the released code.
        BetaPerGroup = "beta-per-group",
        /// One draw of Beta(α, α) for each pair.
        BetaPerSample = "beta-per-sample",
        /// Always γ: "we set the mixup coefficient γ to be 0.4" read literally.
        Fixed = "fixed",
    }
}

section! {
    /// When the mixup term begins; until then the base algorithm trains alone.
    Start {
        /// What decides.
        fixed rule: StartRule = StartRule::Share;
        /// The share of the run before it begins. "Approximately 100 epochs" of 1024 steps in 2^20: 0.09765625.
        fixed share: f64 = 0.097_656_25, SHARE;
        /// The share of the run after which a ramp has reached full weight.
        fixed full: f64 = 0.2, SHARE;
        /// The first step with the term, where a step is given.
        fixed step: u64 = 0;
        /// The share of unlabelled samples in use that has to be reached.
        fixed level: f64 = 0.5, SHARE;
        /// How much of that running share each step keeps.
        fixed momentum: f64 = 0.999, KEPT;
        /// The first step that counts for it.
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

section! {
    /// How difficulty and dissimilarity choose the pairs.
    Guidance {
        /// How pseudo-margins are averaged over the visits of a sample.
        fixed averaging: Averaging = Averaging::Cumulative;
        /// δ of the cumulative average.
        fixed delta: f64 = 0.997, SOME_SHARE;
        /// ρ: how much of the exponential average each visit keeps.
        fixed rho: f64 = 0.9, KEPT;
        /// Since when they are averaged.
        fixed apm_from: ApmFrom = ApmFrom::FirstStep;
        /// Where easy ends and hard begins.
        fixed split: Split = Split::Rank;
        /// Which running quantile that is.
        fixed quantile: f64 = 0.5, SHARE;
        /// How much of the running quantile each step keeps.
        fixed momentum: f64 = 0.99, KEPT;
        /// Where similarity is measured.
        fixed space: Space = Space::Feature;
        /// How k, the number of least similar candidates, is given.
        fixed dissimilar: Dissimilarity = Dissimilarity::Fraction;
        /// k as a share of the pool of candidates.
        fixed fraction: f64 = 0.05, SHARE;
        /// k as a number.
        fixed count: u32 = 15, SOME;
    }
}

choice! {
    /// How pseudo-margins are averaged.
    Averaging {
        /// The paper's Eq. 5, with δ.
        Cumulative = "cumulative",
        /// A true exponential average with ρ: early margins fade.
        Exponential = "exponential",
    }
}

choice! {
    /// Where easy ends and hard begins.
    Split {
        /// The lower half by rank is hard: the released code.
        Rank = "rank",
        /// Below the batch's median is hard, as Algorithm 1 is written.
        Median = "median",
        /// Below a running quantile is hard.
        Running = "running",
    }
}

choice! {
    /// How k, the number of least similar candidates, is given.
    Dissimilarity {
        /// As a share of the pool: the paper's "5 %".
        Fraction = "fraction",
        /// As a number: the released code's 15.
        Count = "count",
        /// All candidates: the ablation's k = 0.
        Any = "any",
    }
}

words! {
    SameSource {
        Excluded = "excluded": "No: a mixture with itself teaches nothing.",
        Allowed = "allowed": "Yes, as in the released code.",
    }
    PseudoTarget {
        Hard = "hard": "Its hard label, as the paper's argmax.",
        Soft = "soft": "Its probabilities.",
    }
    PairWeight {
        One = "one": "One.",
        Base = "base": "The base algorithm's weight of its pseudo-labelled images.",
    }
    MixLoss {
        CrossEntropy = "cross-entropy": "Soft cross-entropy, mean over the mixtures: the paper.",
        BinaryCrossEntropy = "binary-cross-entropy": "Binary cross-entropy, mean over pairs and classes: the released code.",
    }
    ApmFrom {
        FirstStep = "first-step": "From the first step on: the paper.",
        MixStart = "mix-start": "Once the mixup term has begun: the released code.",
    }
    Space {
        Feature = "feature": "The pooled features of the weak view.",
        Pixel = "pixel": "The normalised pixels of the weak view: the released code.",
        Logit = "logit": "The logits of the weak view.",
    }
}

impl Mixup {
    /// What this comes to in a run of `steps` steps; nothing without pairs.
    pub fn resolve(&self, steps: u64) -> Option<core_mixup::Mixup> {
        let pairing = match self.pairing {
            Pairing::None => return None,
            Pairing::CalibrateMix => core_mixup::Pairing::CalibrateMix(self.guidance.resolve()),
            Pairing::All => core_mixup::Pairing::All(self.guidance.resolve()),
            Pairing::Random => core_mixup::Pairing::Random,
        };
        let source = match self.lambda {
            Lambda::BetaPerGroup => LambdaSource::BetaPerGroup(self.alpha),
            Lambda::BetaPerSample => LambdaSource::BetaPerSample(self.alpha),
            Lambda::Fixed => LambdaSource::Fixed(self.gamma),
        };
        Some(core_mixup::Mixup {
            pairing,
            lambda: core_mixup::Lambda { source, at_least_half: self.at_least_half },
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
    /// What this comes to in a run of `steps` steps.
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

impl Guidance {
    fn resolve(&self) -> core_mixup::Guidance {
        core_mixup::Guidance {
            averaging: match self.averaging {
                Averaging::Cumulative => margin::Averaging::Cumulative { delta: self.delta },
                Averaging::Exponential => margin::Averaging::Exponential { rho: self.rho },
            },
            apm_from: self.apm_from,
            split: match self.split {
                Split::Rank => split::Split::Rank,
                Split::Median => split::Split::Median,
                Split::Running => split::Split::Running { quantile: self.quantile, momentum: self.momentum },
            },
            space: self.space,
            dissimilar: match self.dissimilar {
                Dissimilarity::Fraction => Dissimilar::Fraction(self.fraction),
                Dissimilarity::Count => Dissimilar::Count(self.count as usize),
                Dissimilarity::Any => Dissimilar::Any,
            },
        }
    }
}
