//! How a dataset is split, and how many labels are held out for evaluation instead of training.

use calmix_core::error::CoreError;
use calmix_core::rng::Seed;
use calmix_core::settings::limit::Limit;
use calmix_core::settings::{Kind, SettingType, Shape, Word};
use calmix_formats::error::FormatProblem;
use serde::{Deserialize, Serialize};

/// How many labels are kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rule {
    /// The same number of every class; a class that has fewer gives all.
    PerClass {
        /// Labels per class.
        labels: u64,
    },
    /// A total number, divided equally among the classes with labels; the remainder goes to classes chosen by
    /// the seed, one each. A class with fewer labels gives all of them, and they are not replaced.
    Total {
        /// Labels in total.
        labels: u64,
    },
    /// The same share of every class, rounded so that the total is that share, too.
    Fraction {
        /// The share, in (0, 1].
        share: f64,
    },
    /// A list of ids from elsewhere: a published split, a fold of STL-10.
    Given,
}

/// How a dataset is split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitPlan {
    /// The seed of the draw.
    pub seed: Seed,
    /// How many labels are kept.
    pub rule: Rule,
    /// The subsets that labels come from.
    pub labelled: Vec<String>,
    /// The subsets whose samples are trained on without their label.
    pub unlabelled: Vec<String>,
    /// Whether samples that keep their label are in the unlabelled set, too. Those held out never are.
    pub include_labelled: bool,
    /// How many of the labels are held out for validation.
    pub validation: HoldOut,
}

impl SplitPlan {
    /// Four labels per class of one subset, the rest of it unlabelled, nothing held out.
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
const MAX_HELD_OUT: u64 = 500;
/// The fewest labels that [`HoldOutRule::Fifth`] holds out: fewer are worth more as training labels.
const MIN_HELD_OUT: u64 = 10;

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
            Self::Rule(HoldOutRule::Fifth) => (FIFTH.min(MAX_HELD_OUT as f64 / labels.max(1) as f64), 2),
        }
    }

    /// Whether the rule holds out nothing rather than so few labels.
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
