//! How many labels are held out for evaluation instead of training.

use calmix_core::error::CoreError;
use calmix_core::settings::limit::Limit;
use calmix_core::settings::{Kind, SettingType, Shape, Word};
use serde::{Deserialize, Serialize};

/// How many labels are held out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HoldOut {
    /// This share, in [0, 1). Every class keeps at least one label.
    Share(f64),
    /// By a rule.
    Rule(HoldOutRule),
}

/// Rules that choose how many labels are held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldOutRule {
    /// A fifth, at most 500, and none if that would be fewer than 10. Every class keeps at least two, so a class with two
    /// or fewer gives none.
    Fifth,
}

/// The most labels that [`HoldOutRule::Fifth`] holds out: fitting a temperature does not improve with more.
const MOST: u64 = 500;
/// The fewest labels that [`HoldOutRule::Fifth`] holds out: fewer are worth more as training labels.
const LEAST: u64 = 10;

const FIFTH: f64 = 0.2;

impl HoldOut {
    /// Holds out nothing.
    pub const NONE: Self = Self::Share(0.0);
    /// A fifth of the labels, if there are enough.
    pub const FIFTH: Self = Self::Rule(HoldOutRule::Fifth);

    /// The share of `labels` to hold out, and the minimum that every class keeps.
    pub(super) fn share_of(self, labels: u64) -> (f64, u64) {
        match self {
            Self::Share(share) => (share, 1),
            Self::Rule(HoldOutRule::Fifth) => (FIFTH.min(MOST as f64 / labels.max(1) as f64), 2),
        }
    }

    /// Whether the rule holds out nothing rather than so few labels.
    pub(super) fn refuses(self, held_out: u64) -> bool {
        self == Self::FIFTH && held_out < LEAST
    }
}

impl SettingType for HoldOut {
    fn shape() -> Shape {
        Shape::Value(Kind::NumberOr(&[Word {
            word: "fifth",
            doc: &[
                "A fifth of the labels, at most 500; none if that would be fewer than 10. Every class keeps at least two.",
            ],
        }]))
    }

    fn check(&self, name: &str, limit: Limit) -> Result<(), CoreError> {
        match self {
            Self::Share(share) => limit.check(name, *share),
            Self::Rule(_) => Ok(()),
        }
    }
}
