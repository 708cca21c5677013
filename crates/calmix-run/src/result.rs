//! The result of a run: `result.json`, beside the weights in `model.safetensors`.

use calmix_head::fit::Candidate;
use calmix_io::class_names;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::fitted_calibrator::{Scaling, Uncalibrated};
use calmix_metrics::predictions::EvalSet;
use calmix_metrics::stats::Estimate;
use calmix_recipe::Selection;
use serde::{Deserialize, Serialize};

use crate::events::Finished;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// The step of the model.
    pub step: u64,
    /// The selection rule that chose it.
    pub selection: Selection,
    /// The names of the classes, in the order of the logits.
    #[serde(deserialize_with = "class_names::deserialize")]
    pub classes: Vec<String>,
    /// The temperature that its logits are divided by, if one was fitted. `model.json` has every kind of calibrator.
    pub scaling: Option<Scaling>,
    /// Why there is no calibrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncalibrated: Option<Uncalibrated>,
    /// The metrics of the model, before and after calibration, split by split.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<Evaluation>,
    /// The heads of a run on frozen features, if it trained more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<HeadChoice>,
    /// The metrics by every rule.
    pub finished: Finished,
}

/// The heads that were trained on the same vectors and the same labels, and which of them is the model: that of the recipe,
/// unless labels that no head was trained on have a higher likelihood under the other, by more than a standard error (two, if
/// there are ten times as many samples without a label as with one). With one vector per sample there are more than two, and the model is the one under which these labels are the most likely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadChoice {
    /// The labels of the choice: those out of fold, or those of the dataset's validation split.
    pub chosen_on: EvalSet,
    /// The NLL of the best head that uses samples without labels minus that of the labels alone on these labels, label by
    /// label, with its interval; `None` if there are too few labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nll_difference: Option<Estimate>,
    /// Every head: that of the recipe first if it was trained.
    pub candidates: Vec<HeadCandidate>,
}

/// One of the heads of a run on vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadName {
    /// The head of the recipe, whether the run kept it or not.
    Recipe,
    /// The head that was trained on the labels alone.
    LabelsAlone,
    /// Logistic regression on the labels alone.
    LogisticRegression,
    /// A mixture of Gaussians, fitted to all samples by EM.
    Em,
    /// The same with balanced classes.
    BalancedEm,
    /// The average of logistic regression and the better mixture.
    LrEm,
}

impl HeadChoice {
    /// The head that is the model.
    pub fn kept(&self) -> Option<HeadName> {
        self.candidates.iter().find(|candidate| candidate.kept).map(|candidate| candidate.name)
    }

    /// Whether the candidates are those for one vector per sample.
    pub fn is_of_one_vector(&self) -> bool {
        self.candidates.iter().any(|candidate| candidate.name == HeadName::LogisticRegression)
    }
}

impl From<Candidate> for HeadName {
    fn from(candidate: Candidate) -> Self {
        match candidate {
            Candidate::Settings => Self::Recipe,
            Candidate::LabelsAlone => Self::LabelsAlone,
            Candidate::LogisticRegression => Self::LogisticRegression,
            Candidate::Em => Self::Em,
            Candidate::BalancedEm => Self::BalancedEm,
            Candidate::LrEm => Self::LrEm,
        }
    }
}

impl HeadName {
    /// All names.
    pub const ALL: [Self; 6] =
        [Self::Recipe, Self::LabelsAlone, Self::LogisticRegression, Self::Em, Self::BalancedEm, Self::LrEm];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recipe => "recipe",
            Self::LabelsAlone => "labels-alone",
            Self::LogisticRegression => "logistic-regression",
            Self::Em => "em",
            Self::BalancedEm => "balanced-em",
            Self::LrEm => "lr-em",
        }
    }

    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Recipe => "the recipe's",
            Self::LabelsAlone => "labels alone",
            Self::LogisticRegression => "logistic regression (labels alone)",
            Self::Em => "EM",
            Self::BalancedEm => "balanced EM",
            Self::LrEm => "LR + EM",
        }
    }

    /// The head in words, for sentences.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Recipe => "the recipe's head",
            Self::LabelsAlone => "the head trained on the labels alone",
            Self::LogisticRegression => "logistic regression on the labels alone",
            Self::Em | Self::BalancedEm | Self::LrEm => self.title(),
        }
    }

    /// Whether it is trained on the labels alone.
    pub fn is_labels_alone(self) -> bool {
        matches!(self, Self::LabelsAlone | Self::LogisticRegression)
    }
}

/// The data of a head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadCandidate {
    /// The name of the head.
    pub name: HeadName,
    /// Whether it is the model.
    pub kept: bool,
    /// The mean NLL of the labels of the choice, each by a head and a calibrator that were fitted without it.
    pub nll: Option<f64>,
    /// The temperature of its calibrator.
    pub temperature: Option<f64>,
    /// Its metrics, split by split.
    pub evaluations: Vec<Evaluation>,
}
