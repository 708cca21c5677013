//! A whole method: a base algorithm, a mixup term or none, and how targets are smoothed.

use serde::{Deserialize, Serialize};

use crate::loss::{LossKind, LossTerm};
use crate::mixup::{ApmFrom, Mixup};
use crate::pair::Space;
use crate::pseudo::{Base, BaseState};
use crate::schedule::Utilisation;
use crate::settings::limit::{ANY, from};
use crate::settings::{OutOfRange, SettingType, choice};
use crate::smoothing::Smoothing;
use crate::split::RunningQuantile;

/// Everything that decides what a step learns from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// The algorithm underneath.
    pub base: Base,
    /// The mixup term.
    pub mixup: Option<Mixup>,
    /// Label smoothing of all targets: labelled, pseudo-labelled and mixed.
    pub smoothing: Smoothing,
    /// λ_U, the weight of the unlabelled loss.
    pub unlabelled_weight: f64,
    /// How often the base loss counts while the mixup term is on.
    pub base_loss: BaseLoss,
}

choice! {
    /// How often the base loss counts while the mixup term is on.
    BaseLoss {
        /// Once: L = L_L + λ_U·L_U + L_mix, as in the paper.
        Once = "once",
        /// In each of two passes, as in the released code.
        ///
        /// It runs the base algorithm, then runs it again with the mixtures.
        Twice = "twice",
    }
}

/// What a method remembers between steps, besides the memory of single samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodState {
    /// The base algorithm's.
    pub base: BaseState,
    /// The running line between easy and hard labelled samples.
    pub labelled_line: RunningQuantile,
    /// The running line between easy and hard unlabelled samples.
    pub unlabelled_line: RunningQuantile,
    /// The running share of unlabelled samples in use.
    pub utilisation: Utilisation,
}

impl Method {
    /// Checks every number of the method.
    ///
    /// # Errors
    /// Names the first setting that is out of its range.
    pub fn validate(&self) -> Result<(), OutOfRange> {
        match &self.base {
            Base::Supervised => {}
            Base::FixMatch(rule) => rule.check("base", ANY)?,
            Base::FlexMatch(rule) => rule.check("base", ANY)?,
            Base::SoftMatch(rule) => rule.check("base", ANY)?,
        }
        self.smoothing.check("smoothing", ANY)?;
        from(0.0).check("unlabelled_weight", self.unlabelled_weight)?;
        self.mixup.as_ref().map_or(Ok(()), Mixup::validate).map_err(|error| error.within("mixup"))
    }

    /// The state before the first step.
    pub fn initial_state(&self, classes: usize, samples: u64) -> MethodState {
        MethodState {
            base: self.base.initial_state(classes, samples),
            labelled_line: RunningQuantile::default(),
            unlabelled_line: RunningQuantile::default(),
            utilisation: Utilisation::default(),
        }
    }

    /// The terms of the loss: `L_L + λ_U·L_U`, and L_mix where there is a mixup.
    pub fn loss_terms(&self) -> Vec<LossTerm> {
        let base = [(LossKind::Labelled, 1.0), (LossKind::Unlabelled, self.unlabelled_weight)];
        let mixup = self.mixup.map(|mixup| (LossKind::Mixup(mixup.loss), 1.0));
        base.into_iter().chain(mixup).map(|(kind, weight)| LossTerm { kind, weight }).collect()
    }

    /// The weight of the mixup term at `step`, in [0, 1]: zero where there is none, or not yet.
    pub fn mix_weight(&self, step: u64, state: &MethodState) -> f64 {
        self.mixup.map_or(0.0, |mixup| mixup.start.weight(step, &state.utilisation))
    }

    /// Whether pseudo-margins are averaged at `step`.
    pub fn averages_margins(&self, step: u64, state: &MethodState) -> bool {
        let guidance = self.mixup.as_ref().and_then(|mixup| mixup.pairing.guidance());
        guidance.is_some_and(|guidance| match guidance.apm_from {
            ApmFrom::FirstStep => true,
            ApmFrom::MixStart => self.mix_weight(step, state) > 0.0,
        })
    }

    /// Where the similarity of two images is measured; none where it is not asked for.
    pub fn similarity_space(&self) -> Option<Space> {
        self.mixup.as_ref().and_then(|mixup| mixup.pairing.guidance()).map(|guidance| guidance.space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixup::LambdaSource;
    use crate::preset::{paper, released_code};
    use crate::pseudo::{FixMatch, SoftMatch};
    use crate::schedule::MixStart;

    #[test]
    fn the_presets_are_valid() {
        for base in
            [Base::Supervised, Base::FixMatch(FixMatch::default()), Base::SoftMatch(SoftMatch::default())]
        {
            assert_eq!(paper(base, 2_000).validate(), Ok(()));
        }
        assert_eq!(released_code().validate(), Ok(()));
    }

    #[test]
    fn a_number_out_of_range_is_named() {
        let mut method = paper(Base::FixMatch(FixMatch { threshold: 1.5 }), 10);
        assert_eq!(
            method.validate().unwrap_err().to_string(),
            "base.threshold = 1.5 is out of range: expected a number from 0 to 1"
        );
        method.base = Base::Supervised;
        for damage in [
            |m: &mut Mixup| m.lambda.source = LambdaSource::BetaPerGroup(f64::NAN),
            |m: &mut Mixup| m.start = MixStart::Ramp { from: 9, to: 8 },
            |m: &mut Mixup| m.min_confidence = Some(-0.1),
        ] {
            let mut mixup = method.mixup.unwrap();
            damage(&mut mixup);
            assert!(Method { mixup: Some(mixup), ..method }.validate().is_err());
        }
    }

    #[test]
    fn the_loss_has_the_terms_of_its_method() {
        let kinds = |method: &Method| method.loss_terms().iter().map(|term| term.kind).collect::<Vec<_>>();
        let method = paper(Base::FixMatch(FixMatch::default()), 10);
        let mixup = LossKind::Mixup(crate::mixup::MixLoss::CrossEntropy);
        assert_eq!(kinds(&method), [LossKind::Labelled, LossKind::Unlabelled, mixup]);
        let plain = Method { mixup: None, unlabelled_weight: 0.5, ..method };
        assert_eq!(kinds(&plain), [LossKind::Labelled, LossKind::Unlabelled]);
        assert_eq!(plain.loss_terms()[1].weight, 0.5);
    }
}
