//! The plan of a split: how many labels are kept, and how many are held out for evaluation.

use calmix_core::error::CoreError;
use calmix_core::rng::Seed;
use calmix_core::settings::limit::Limit;
use calmix_core::settings::{Kind, SettingType, Shape, Word};
use calmix_formats::error::FormatProblem;
use serde::{Deserialize, Serialize};

/// The rule for the number of labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rule {
    /// The same number for every class; a class with fewer labels keeps all of them.
    PerClass {
        /// Labels per class.
        labels: u64,
    },
    /// A total, divided equally among the classes with labels; the remainder goes to classes chosen by the seed, one each. A
    /// class with fewer labels keeps all of them, and the difference is not made up.
    Total {
        /// Labels in total.
        labels: u64,
    },
    /// The same share of every class, rounded so that the total is that share, too.
    Fraction {
        /// The share, in (0, 1].
        share: f64,
    },
    /// A given list of ids: a published split, or a fold of STL-10.
    Given,
}

/// The plan of a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitPlan {
    /// The seed of the draw.
    pub seed: Seed,
    /// The rule for the number of labels.
    pub rule: Rule,
    /// The subsets to take labels from.
    pub labelled: Vec<String>,
    /// The subsets to take unlabelled samples from.
    pub unlabelled: Vec<String>,
    /// Whether the unlabelled set includes the labelled samples. It never includes held-out ones.
    pub include_labelled: bool,
    /// The number of labels to hold out for validation.
    pub validation: HoldOut,
}

impl SplitPlan {
    /// Makes a plan with four labels per class of one subset, the rest of it unlabelled, and nothing held out.
    pub fn new(seed: Seed, subset: &str) -> Self {
        Self {
            seed,
            rule: Rule::PerClass { labels: 4 },
            labelled: vec![subset.to_owned()],
            unlabelled: vec![subset.to_owned()],
            include_labelled: false,
            validation: HoldOut::NONE,
        }
    }

    pub(super) fn check(&self) -> Result<(), FormatProblem> {
        let sensible = match self.rule {
            Rule::PerClass { labels } | Rule::Total { labels } => labels > 0,
            Rule::Fraction { share } => share > 0.0 && share <= 1.0,
            Rule::Given => true,
        };
        if !sensible {
            return Err(FormatProblem::Content(format!("the split rule {:?} is out of range", self.rule)));
        }
        match self.validation {
            HoldOut::Share(share) if !(0.0..1.0).contains(&share) => {
                let problem = format!("the validation share is {share}, expected one in [0, 1)");
                Err(FormatProblem::Content(problem))
            }
            _ => Ok(()),
        }
    }
}

/// The number of labels to hold out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HoldOut {
    /// This share, in [0, 1). Every class keeps at least one label.
    Share(f64),
    /// A number given by a rule.
    Rule(HoldOutRule),
}

/// Rules for the number of held-out labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldOutRule {
    /// A fifth, at most 500, and none if that would be fewer than 10. Every class keeps at least two labels, so a class with
    /// two or fewer gives none.
    Fifth,
}

/// The maximum that [`HoldOutRule::Fifth`] holds out: fitting a temperature does not improve with more.
const MAX_HELD_OUT: u64 = 500;
/// The minimum that [`HoldOutRule::Fifth`] holds out: fewer labels are worth more for training.
const MIN_HELD_OUT: u64 = 10;

const FIFTH: f64 = 0.2;

impl HoldOut {
    /// Holds out nothing.
    pub const NONE: Self = Self::Share(0.0);
    /// A fifth of the labels, if there are enough.
    pub const FIFTH: Self = Self::Rule(HoldOutRule::Fifth);

    /// Returns the share of `labels` to hold out, and the minimum that every class keeps.
    pub(super) fn share_of(self, labels: u64) -> (f64, u64) {
        match self {
            Self::Share(share) => (share, 1),
            Self::Rule(HoldOutRule::Fifth) => (FIFTH.min(MAX_HELD_OUT as f64 / labels.max(1) as f64), 2),
        }
    }

    /// Returns whether the rule holds out nothing because this number of labels is too small.
    pub(super) fn refuses(self, held_out: u64) -> bool {
        self == Self::FIFTH && held_out < MIN_HELD_OUT
    }
}

impl SettingType for HoldOut {
    fn shape() -> Shape {
        Shape::Value(Kind::FloatOr(&[Word {
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
