//! The mixup term: pairs of rows, the coefficient λ and the mixed target (Eq. 6–9).

pub mod cosine;
pub(crate) mod mixer;
pub mod pair;
pub mod split;

pub use crate::observation::Row;
pub use mixer::Mix;

use crate::margin::Averaging;
use crate::rng::{Domain, Seed};
use crate::schedule::Start;
use crate::settings::limit::{ANY, SHARE, from};
use crate::settings::{choice, rule, section};
use pair::{Dissimilar, DissimilarWord, SameSource, Space};
use split::Split;

section! {
    /// The mixup term.
    Mixup {
        /// Which images are mixed with each other.
        fixed pairing: Pairing;
        /// How the mixup coefficient λ is chosen.
        fixed lambda: LambdaSource;
        /// Whether to replace λ by max(λ, 1 − λ), so that the first image dominates.
        ///
        /// MixMatch does this; the paper does not.
        fixed at_least_half: bool = false;
        /// Whether a labelled image may be mixed with itself if it is also among the unlabelled images.
        fixed same_source: SameSource = SameSource::Excluded;
        /// The target of a pseudo-labelled image in a mixture.
        fixed pseudo_target: PseudoTarget = PseudoTarget::Hard;
        /// The weight of the mixup loss in the total loss; 1 in the paper.
        fixed weight: f64 = 1.0, from(0.0);
        /// The weight of a pair in the mixup loss.
        fixed pair_weight: PairWeight = PairWeight::One;
        /// The minimum confidence of a pseudo-labelled image in a mixture; 0 for no minimum, as in Algorithm 1.
        fixed min_confidence: f64 = 0.0, SHARE;
        /// Whether a mixture of features is scaled to unit length, as all features of a head are.
        ///
        /// Not in the paper. It has no effect on mixtures of images.
        fixed unit_length: bool = false;
        /// The largest number of labels per class, on average, with which there are mixtures; 0 for any number.
        ///
        /// Not in the paper. With 25 labels a temperature alone is as good as any mixture or better. Only for heads.
        fixed max_labels_per_class: u32 = 0, ANY;
        /// The loss between a mixture and its target.
        fixed loss: MixLoss = MixLoss::CrossEntropy;
        /// When the mixup term starts.
        part start: Start;
    }
}

impl Copy for Mixup {}

impl Mixup {
    /// Returns whether mixtures are made with this number of labels, by [`Mixup::max_labels_per_class`].
    pub fn applies_to(&self, labels: usize, classes: usize) -> bool {
        let max_labels = u64::from(self.max_labels_per_class) * classes as u64;
        max_labels == 0 || labels as u64 <= max_labels
    }
}

rule! {
    /// Which images are mixed with each other.
    Pairing {
        /// No mixup: the base algorithm alone.
        None = "none",
        /// Easy labelled images with hard unlabelled ones, hard labelled images with easy unlabelled ones.
        ///
        /// CalibrateMix: LE+UH and LH+UE; without unlabelled data, easy and hard labelled images with each other.
        CalibrateMix(guidance: Guidance) = "calibratemix",
        /// The paper's ablation "mixup all": easy and hard, labelled and unlabelled images in four groups.
        ///
        /// LE+LH, LE+UH, LH+UE and UE+UH.
        All { guidance: Guidance, anchors: Anchors } = "all",
        /// Random pairs from the combined pool of labelled and unlabelled images.
        ///
        /// "We randomly pair two samples from the combined pool of labeled and unlabeled data": as many pairs as
        /// there are labelled rows. The paper does not specify when random mixup starts; here `start` decides, as for guided
        /// pairs.
        Random = "random",
        /// Each labelled image with a random unlabelled one.
        ///
        /// The control of CalibrateMix: the same kind of pairs, without guidance. Not in the paper. Without unlabelled data,
        /// labelled images with each other.
        Crossed = "crossed",
    }
    PairingKeys {
        pairing: PairingName = CalibrateMix;
        /// How pairs are chosen by difficulty and dissimilarity.
        guidance: Guidance;
        /// The number of images that are mixed in each of the four groups of "mixup all".
        anchors: Anchors = Anchors::Batch, ANY;
    }
}

choice! {
    /// The number of anchors (rows that get a partner) in each group of the ablation "mixup all".
    Anchors {
        /// A quarter of the labelled batch in each group: as many mixtures as labelled images, as in the paper.
        ///
        /// They are drawn at random in each step.
        Batch = "batch",
        /// Every image of a group: 320 mixtures of 64 labelled and 448 unlabelled images.
        ///
        /// Seven in ten of them mix two pseudo-labelled images.
        Every = "every",
    }
}

section! {
    /// How pairs are chosen by difficulty and dissimilarity.
    Guidance {
        /// How margins are averaged over the visits to a sample.
        fixed averaging: Averaging;
        /// The first step at which pseudo-margins are averaged.
        fixed apm_from: ApmFrom = ApmFrom::FirstStep;
        /// How a batch is split into easy and hard samples.
        fixed split: Split;
        /// The space in which similarity is measured.
        #[when(dissimilar is not DissimilarWord::Any)]
        fixed space: Space = Space::Feature;
        /// How k, the number of least similar candidates to draw a partner from, is set.
        fixed dissimilar: Dissimilar;
    }
}

impl Copy for Guidance {}

choice! {
    /// The first step at which pseudo-margins are averaged. AUM is always averaged from the first step.
    ApmFrom {
        /// From the first step, as in the paper.
        ///
        /// "We monitor the Area Under the Margin … at each iteration", and APM likewise.
        FirstStep = "first-step",
        /// From the start of the mixup term, as in the released code.
        MixStart = "mix-start",
    }
}

rule! {
    /// How λ, the mixup coefficient, is chosen. "We set the mixup coefficient γ to be 0.4", but also "the mixup
    /// coefficient γ comes from the Beta distribution, with the hyperparameter α"; the released code draws
    /// Beta(0.4, 0.4).
    LambdaSource {
        /// One draw from Beta(α, α) per group of pairs, as in the released code.
        BetaPerGroup(alpha: f64) = "beta-per-group",
        /// One draw from Beta(α, α) per pair.
        ///
        /// The gradient has a lower variance.
        BetaPerSample(alpha: f64) = "beta-per-sample",
        /// The constant γ: "we set the mixup coefficient γ to be 0.4", read literally.
        Fixed(gamma: f64) = "fixed",
    }
    LambdaKeys {
        lambda: LambdaWord = BetaPerGroup;
        /// α of the Beta distribution.
        alpha: f64 = 0.4, from(0.0);
        /// γ, the constant coefficient.
        gamma: f64 = 0.4, SHARE;
    }
}

choice! {
    /// The target of a pseudo-labelled row in a mixture.
    PseudoTarget {
        /// The hard pseudo-label, the paper's argmax.
        Hard = "hard",
        /// The predicted probabilities.
        ///
        /// Not in the paper.
        Soft = "soft",
        /// A mean of both: the hard label with the base algorithm's weight of the image, the probabilities with the rest.
        ///
        /// `w·ŷ + (1 − w)·p`, where w is the weight of the row in the unlabelled loss. Not in the paper.
        Blended = "blended",
    }
}

choice! {
    /// The weight of a pair in the mixup loss.
    PairWeight {
        /// Weight 1 for every pair.
        One = "one",
        /// The base algorithm's weight of the pseudo-labelled images in the pair.
        ///
        /// Not in the paper.
        Base = "base",
    }
}

choice! {
    /// The loss between a mixture and its target.
    MixLoss {
        /// Soft cross-entropy, averaged over the mixtures, as in the paper.
        ///
        /// The last line of Algorithm 1.
        CrossEntropy = "cross-entropy",
        /// Binary cross-entropy, averaged over pairs and classes, as in the released code.
        ///
        /// It takes logits; the mean is taken within each group of pairs, and the groups are added.
        BinaryCrossEntropy = "binary-cross-entropy",
    }
}

impl Mixup {
    /// Draws λ for each pair of a group; `ids` are the samples of the pairs' first rows.
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
    /// Returns how pairs are chosen by difficulty and dissimilarity; `None` if they are random or there are none.
    pub fn guidance(&self) -> Option<&Guidance> {
        match self {
            Self::CalibrateMix(guidance) | Self::All { guidance, .. } => Some(guidance),
            Self::None | Self::Random | Self::Crossed => None,
        }
    }

    /// Returns the number of anchors in the group `kind` for a batch of `labelled` rows; `None` if all its rows are anchors.
    pub(crate) fn max_anchors(&self, kind: usize, labelled: usize) -> Option<usize> {
        match self {
            // Differences of rounded multiples, so that the four quarters add up to the batch.
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
    fn lambda_is_drawn_per_group_or_pair() {
        let group = draw(LambdaSource::BetaPerGroup(0.4), false, 1);
        assert!(group[0] == group[1] && group[1] == group[2]);
        assert_ne!(group, draw(LambdaSource::BetaPerGroup(0.4), false, 2));
        let sample = draw(LambdaSource::BetaPerSample(0.4), false, 1);
        assert!(sample[0] != sample[1] && sample[1] != sample[2]);
        assert_eq!(draw(LambdaSource::Fixed(0.4), false, 1), [0.4; 3]);
    }

    #[test]
    fn lambda_floor_makes_first_row_dominate() {
        assert_eq!(draw(LambdaSource::Fixed(0.4), true, 1), [0.6; 3]);
        for step in 0..50 {
            assert!(draw(LambdaSource::BetaPerSample(0.4), true, step).iter().all(|&l| l >= 0.5));
        }
    }
}
