//! A method: a base algorithm, a mixup term or none, and how targets are smoothed.

pub mod feedback;
pub mod smoothing;

use serde::{Deserialize, Serialize};

use crate::loss::{LogitPenalty, LossKind, LossTerm};
use crate::method::smoothing::Smoothing;
use crate::mixup::pair::Space;
use crate::mixup::split::RunningQuantile;
use crate::mixup::{ApmFrom, Guidance, Mixup, Pairing, PairingName};
use crate::pseudo::{Base, BaseName, BaseState};
use crate::schedule::{RunStep, Utilisation};
use crate::settings::limit::from;
use crate::settings::{choice, section};

section! {
    /// The method: everything that determines how a step trains on its batch.
    ///
    /// Every question that the paper leaves open is a key here or below.
    Method {
        /// The base algorithm.
        fixed base: Base;
        /// λ_U: the weight of the unlabelled loss.
        #[when(base is not BaseName::Supervised | BaseName::SupervisedPseudoMixup)]
        fixed unlabelled_weight: f64 = 1.0, from(0.0);
        /// How often the base loss is counted once the mixup term has started.
        #[when(mixup.pairing is not PairingName::None)]
        fixed base_loss: BaseLoss = BaseLoss::Once;
        /// Label smoothing of all targets: labelled, pseudo-labelled and mixed.
        fixed smoothing: Smoothing;
        /// The penalty on logit distances.
        #[when(base is not BaseName::Supervised | BaseName::SupervisedPseudoMixup)]
        part logit_penalty: LogitPenalty;
        /// The mixup term.
        #[when(mixup.pairing is not PairingName::None)]
        part mixup: Mixup;
    }
}

impl Copy for Method {}

choice! {
    /// How often the base loss is counted once the mixup term has started.
    BaseLoss {
        /// Once: L = L_L + λ_U·L_U + L_mix, as in the paper.
        Once = "once",
        /// Twice, once in each of two passes, as in the released code.
        ///
        /// The released code runs the base algorithm, then runs it again with the mixtures.
        Twice = "twice",
    }
}

/// The state of a method between steps, apart from the state of single samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodState {
    /// The state of the base algorithm.
    pub base: BaseState,
    /// The running threshold between easy and hard labelled samples.
    #[serde(rename = "labelled_line")]
    pub labelled_threshold: RunningQuantile,
    /// The running threshold between easy and hard unlabelled samples.
    #[serde(rename = "unlabelled_line")]
    pub unlabelled_threshold: RunningQuantile,
    /// The running share of unlabelled samples in use (their mean weight).
    pub utilisation: Utilisation,
}

impl Method {
    /// Returns the state before the first step.
    pub fn initial_state(&self, classes: usize, samples: u64) -> MethodState {
        MethodState {
            base: self.base.initial_state(classes, samples),
            labelled_threshold: RunningQuantile::default(),
            unlabelled_threshold: RunningQuantile::default(),
            utilisation: Utilisation::default(),
        }
    }

    /// Returns the same base algorithm without the mixup term.
    #[must_use]
    pub fn without_mixup(self) -> Self {
        Self { mixup: Mixup { pairing: Pairing::None, ..self.mixup }, ..self }
    }

    /// Returns the mixup term, if any.
    pub fn mixup(&self) -> Option<&Mixup> {
        (self.mixup.pairing != Pairing::None).then_some(&self.mixup)
    }

    /// Returns how pairs are chosen by difficulty and dissimilarity; `None` if they are random or there are none.
    pub fn guidance(&self) -> Option<&Guidance> {
        self.mixup.pairing.guidance()
    }

    /// Returns the terms of the loss: `L_L + λ_U·L_U`, further terms of the base algorithm, the logit penalty, and L_mix if
    /// there is a mixup term.
    pub fn loss_terms(&self) -> Vec<LossTerm> {
        let base = [(LossKind::Labelled, 1.0), (LossKind::Unlabelled, self.unlabelled_weight)];
        let fairness = match self.base {
            Base::FreeMatch(rule) => Some((LossKind::Fairness, rule.fairness)),
            _ => None,
        };
        let LogitPenalty { weight, margin } = self.logit_penalty;
        let distance = (weight > 0.0).then_some((LossKind::LogitDistance { margin }, weight));
        let mixup = self.mixup().map(|mixup| (LossKind::Mixup(mixup.loss), mixup.weight));
        base.into_iter()
            .chain(fairness)
            .chain(distance)
            .chain(mixup)
            .map(|(kind, weight)| LossTerm { kind, weight })
            .collect()
    }

    /// Returns the weight of the mixup term at a step, in [0, 1]; zero if there is none, or before it starts.
    pub fn mix_weight(&self, at: RunStep, state: &MethodState) -> f64 {
        self.mixup().map_or(0.0, |mixup| mixup.start.weight(at, &state.utilisation))
    }

    /// Returns whether pseudo-margins are averaged at a step.
    pub fn averages_margins(&self, at: RunStep, state: &MethodState) -> bool {
        self.guidance().is_some_and(|guidance| match guidance.apm_from {
            ApmFrom::FirstStep => true,
            ApmFrom::MixStart => self.mix_weight(at, state) > 0.0,
        })
    }

    /// Returns the space in which similarity is measured; `None` if pairs are not guided by it.
    pub fn similarity_space(&self) -> Option<Space> {
        self.guidance().map(|guidance| guidance.space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::margin::Averaging;
    use crate::mixup::{LambdaSource, MixLoss};
    use crate::preset::{paper, released_code};
    use crate::pseudo::{FixMatch, SoftMatch};
    use crate::schedule::StartRule;
    use crate::settings::SettingType;
    use crate::settings::limit::ANY;

    #[test]
    fn the_presets_are_valid() {
        for base in
            [Base::Supervised, Base::FixMatch(FixMatch::default()), Base::SoftMatch(SoftMatch::default())]
        {
            assert_eq!(paper(base).check("", ANY), Ok(()));
        }
        assert_eq!(released_code().check("", ANY), Ok(()));
        assert_eq!(paper(Base::default()), Method::default(), "the paper's are the defaults");
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let check = |method: Method| method.check("method", ANY).map_err(|error| error.to_string());
        let wrong = paper(Base::FixMatch(FixMatch { threshold: 1.5 }));
        let message = "method.fixmatch.threshold = 1.5 is out of range: expected a number from 0 to 1";
        assert_eq!(check(wrong), Err(message.to_owned()));
        let mut damaged = paper(Base::Supervised);
        damaged.mixup.lambda = LambdaSource::BetaPerGroup(f64::NAN);
        assert!(check(damaged).unwrap_err().starts_with("method.mixup.alpha = NaN"));
        let mut damaged = paper(Base::Supervised);
        damaged.mixup.start.rule = StartRule::Ramp { share: 0.1, full: 8.0 };
        assert!(check(damaged).unwrap_err().starts_with("method.mixup.start.full = 8"));
        let mut damaged = paper(Base::Supervised);
        let guidance = Guidance { averaging: Averaging::Cumulative { delta: 0.0 }, ..Guidance::default() };
        damaged.mixup.pairing = Pairing::CalibrateMix(guidance);
        assert!(check(damaged).unwrap_err().starts_with("method.mixup.guidance.delta = 0"));
        let mut damaged = paper(Base::Supervised);
        damaged.mixup.min_confidence = -0.1;
        assert!(check(damaged).unwrap_err().starts_with("method.mixup.min_confidence = -0.1"));
    }

    #[test]
    fn the_loss_has_the_terms_of_its_method() {
        let kinds = |method: &Method| method.loss_terms().iter().map(|term| term.kind).collect::<Vec<_>>();
        let method = paper(Base::FixMatch(FixMatch::default()));
        let mixup = LossKind::Mixup(MixLoss::CrossEntropy);
        assert_eq!(kinds(&method), [LossKind::Labelled, LossKind::Unlabelled, mixup]);
        let plain = Method { unlabelled_weight: 0.5, ..method.without_mixup() };
        assert_eq!(kinds(&plain), [LossKind::Labelled, LossKind::Unlabelled]);
        assert_eq!(plain.loss_terms()[1].weight, 0.5);
    }
}
