//! What a mixture is: two rows, a coefficient and a target (Eq. 6–9).

pub(crate) mod mixer;

use crate::margin::Averaging;
use crate::pair::{Dissimilar, DissimilarWord, SameSource, Space};
use crate::rng::{Domain, Seed};
use crate::schedule::Start;
use crate::settings::limit::{ANY, SHARE, from};
use crate::settings::{choice, rule, section};
use crate::split::Split;

section! {
    /// The mixup term.
    Mixup {
        /// Who is mixed with whom.
        fixed pairing: Pairing;
        /// Where the mixup coefficient comes from.
        fixed lambda: LambdaSource;
        /// Whether λ is replaced by max(λ, 1 − λ), so that the first image dominates.
        ///
        /// MixMatch does so; the paper does not.
        fixed at_least_half: bool = false;
        /// Whether a labelled image may be mixed with its own occurrence among the unlabelled ones.
        fixed same_source: SameSource = SameSource::Excluded;
        /// What a pseudo-labelled image contributes to the target.
        fixed pseudo_target: PseudoTarget = PseudoTarget::Hard;
        /// The weight of the mixup loss beside the others; 1 in the paper.
        fixed weight: f64 = 1.0, from(0.0);
        /// What a pair weighs.
        fixed pair_weight: PairWeight = PairWeight::One;
        /// The confidence that a pseudo-labelled image needs to take part; 0 for none, as in Algorithm 1.
        fixed min_confidence: f64 = 0.0, SHARE;
        /// How a mixture is compared with its target.
        fixed loss: MixLoss = MixLoss::CrossEntropy;
        /// When the term begins.
        part start: Start;
    }
}

impl Copy for Mixup {}

rule! {
    /// Who is mixed with whom.
    Pairing {
        /// Nobody: the base algorithm alone.
        None = "none",
        /// Labelled easy with unlabelled hard, labelled hard with unlabelled easy.
        ///
        /// CalibrateMix: LE+UH and LH+UE; without unlabelled data, labelled easy and labelled hard with each other.
        CalibrateMix(guidance: Guidance) = "calibratemix",
        /// The ablation "mixup all": easy and hard of both kinds, in four groups.
        ///
        /// LE+LH, LE+UH, LH+UE and UE+UH.
        All { guidance: Guidance, anchors: Anchors } = "all",
        /// Two images of the combined pool of labelled and unlabelled ones, at random.
        ///
        /// "We randomly pair two samples from the combined pool of labeled and unlabeled data": as many pairs as
        /// there are labelled rows. The paper does not say when random mixup begins; here `start` says it, as for guided
        /// pairs.
        Random = "random",
    }
    PairingKeys {
        pairing: PairingName = CalibrateMix;
        /// How difficulty and dissimilarity choose the pairs.
        guidance: Guidance;
        /// How many images of mixup all's four groups are mixed.
        anchors: Anchors = Anchors::Batch, ANY;
    }
}

choice! {
    /// How many rows of each group of the ablation "mixup all" are anchors, which get a partner.
    Anchors {
        /// A quarter of the labelled batch in each group: as many mixtures as labelled images, as in the paper.
        ///
        /// They are drawn at random, anew in each step.
        Batch = "batch",
        /// Every row of a group: 320 mixtures of 64 labelled and 448 unlabelled images.
        ///
        /// Seven in ten of them mix two pseudo-labelled images.
        Every = "every",
    }
}

section! {
    /// How difficulty and dissimilarity choose the pairs.
    Guidance {
        /// How margins are averaged over the visits of a sample.
        fixed averaging: Averaging;
        /// Since when they are averaged.
        fixed apm_from: ApmFrom = ApmFrom::FirstStep;
        /// Where easy ends and hard begins.
        fixed split: Split;
        /// Where similarity is measured.
        #[when(dissimilar is not DissimilarWord::Any)]
        fixed space: Space = Space::Feature;
        /// How k, the number of least similar candidates, is given.
        fixed dissimilar: Dissimilar;
    }
}

impl Copy for Guidance {}

choice! {
    /// Since when pseudo-margins are averaged. AUM always counts from the first step.
    ApmFrom {
        /// From the first step on: the paper.
        ///
        /// "We monitor the Area Under the Margin … at each iteration", and APM likewise.
        FirstStep = "first-step",
        /// Once the mixup term has begun: the released code.
        MixStart = "mix-start",
    }
}

rule! {
    /// Where λ, the mixup coefficient, comes from. "We set the mixup coefficient γ to be 0.4", but also "the mixup
    /// coefficient γ comes from the Beta distribution, with the hyperparameter α"; the released code draws
    /// Beta(0.4, 0.4).
    LambdaSource {
        /// One draw of Beta(α, α) for each kind of pair: the released code.
        BetaPerGroup(alpha: f64) = "beta-per-group",
        /// One draw of Beta(α, α) for each pair.
        ///
        /// The gradient has a lower variance.
        BetaPerSample(alpha: f64) = "beta-per-sample",
        /// Always γ: "we set the mixup coefficient γ to be 0.4" read literally.
        Fixed(gamma: f64) = "fixed",
    }
    LambdaKeys {
        lambda: LambdaWord = BetaPerGroup;
        /// α of the Beta distribution.
        alpha: f64 = 0.4, from(0.0);
        /// γ, where the coefficient is fixed.
        gamma: f64 = 0.4, SHARE;
    }
}

choice! {
    /// What a pseudo-labelled row contributes to the target.
    PseudoTarget {
        /// Its hard label, as the paper's argmax.
        Hard = "hard",
        /// Its probabilities.
        ///
        /// Beyond the paper.
        Soft = "soft",
        /// One-hot to the share that the base algorithm trusts the label, its probabilities for the rest.
        ///
        /// `w·ŷ + (1 − w)·p`, where w is the weight of the row in the unlabelled loss. Beyond the paper.
        Blended = "blended",
    }
}

choice! {
    /// What a pair weighs in the mixup loss.
    PairWeight {
        /// One.
        One = "one",
        /// The base algorithm's weight of its pseudo-labelled images.
        ///
        /// Beyond the paper.
        Base = "base",
    }
}

choice! {
    /// How a mixture is compared with its target.
    MixLoss {
        /// Soft cross-entropy, mean over the mixtures: the paper.
        ///
        /// The last line of Algorithm 1.
        CrossEntropy = "cross-entropy",
        /// Binary cross-entropy, mean over pairs and classes: the released code.
        ///
        /// It takes logits; the mean is taken in each kind of pair, and the kinds are added.
        BinaryCrossEntropy = "binary-cross-entropy",
    }
}

/// A row of one of the two batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// A row of the labelled batch.
    Labelled(usize),
    /// A row of the unlabelled batch, weak view.
    Unlabelled(usize),
}

/// One mixture: `λ·a + (1 − λ)·b`, images and targets alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// The first row, which λ multiplies: the labelled one in CalibrateMix's pairs.
    pub a: Row,
    /// The second row.
    pub b: Row,
    /// λ.
    pub lambda: f32,
    /// The (pseudo-)label of `a`.
    pub class_a: u32,
    /// The (pseudo-)label of `b`.
    pub class_b: u32,
    /// Its factor in the sum that is the mixup loss: 1/|D_M|, times what the pair and the start of the term
    /// weigh.
    pub weight: f32,
}

impl Mixup {
    /// The λ of each pair of one kind, whose first rows are the samples `ids`.
    pub fn draw_lambda(&self, ids: &[u64], seed: Seed, step: u64) -> Vec<f32> {
        let coefficients: Vec<f64> = match self.lambda {
            LambdaSource::Fixed(lambda) => vec![lambda; ids.len()],
            LambdaSource::BetaPerGroup(alpha) => {
                vec![seed.stream(Domain::Lambda, step, 0).beta(alpha); ids.len()]
            }
            LambdaSource::BetaPerSample(alpha) => ids
                .iter()
                .zip(crate::rng::occurrences(ids.iter().copied()))
                .map(|(&id, n)| seed.stream(Domain::Lambda, step, id).occurrence(n).beta(alpha))
                .collect(),
        };
        let floor = |lambda: f64| {
            if self.at_least_half { lambda.max(1.0 - lambda) } else { lambda }
        };
        coefficients.into_iter().map(|lambda| floor(lambda) as f32).collect()
    }
}

impl Pairing {
    /// What guides the pairs, if anything does.
    pub fn guidance(&self) -> Option<&Guidance> {
        match self {
            Self::CalibrateMix(guidance) | Self::All { guidance, .. } => Some(guidance),
            Self::None | Self::Random => None,
        }
    }

    /// How many rows of a kind of pair are anchors, where the batch has so many labelled rows; none for all of them.
    pub(crate) fn most_anchors(&self, kind: usize, labelled: usize) -> Option<usize> {
        match self {
            // The quarters of a batch add up to it.
            Self::All { anchors: Anchors::Batch, .. } => {
                Some(labelled * (kind + 1) / 4 - labelled * kind / 4)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(lambda: LambdaSource, at_least_half: bool, step: u64) -> Vec<f32> {
        Mixup { lambda, at_least_half, ..Mixup::default() }.draw_lambda(&[4, 4, 9], Seed(3), step)
    }

    #[test]
    fn one_lambda_a_group_or_one_a_pair() {
        let group = draw(LambdaSource::BetaPerGroup(0.4), false, 1);
        assert!(group[0] == group[1] && group[1] == group[2]);
        assert_ne!(group, draw(LambdaSource::BetaPerGroup(0.4), false, 2));
        let sample = draw(LambdaSource::BetaPerSample(0.4), false, 1);
        assert!(sample[0] != sample[1] && sample[1] != sample[2]);
        assert_eq!(draw(LambdaSource::Fixed(0.4), false, 1), [0.4; 3]);
    }

    #[test]
    fn the_floor_keeps_the_first_row_in_front() {
        assert_eq!(draw(LambdaSource::Fixed(0.4), true, 1), [0.6; 3]);
        for step in 0..50 {
            assert!(draw(LambdaSource::BetaPerSample(0.4), true, step).iter().all(|&l| l >= 0.5));
        }
    }
}
