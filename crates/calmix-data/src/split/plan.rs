//! How a dataset is split.

use calmix_core::rng::Seed;
use calmix_formats::error::FormatProblem;
use serde::{Deserialize, Serialize};

use super::hold_out::HoldOut;

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
