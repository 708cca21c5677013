//! The outcome of a run, and its result in `result.json`, beside the weights in `model.safetensors`.

use calmix_head::fit::Candidate;
use calmix_io::class_names;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::fitted_calibrator::{Scaling, Uncalibrated};
use calmix_metrics::learning_curve::LearningCurve;
use calmix_metrics::metrics::Metrics;
use calmix_metrics::predictions::EvalSet;
use calmix_metrics::stats::Estimate;
use calmix_recipe::Selection;
use serde::{Deserialize, Serialize};

use crate::events::Finished;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The run finished.
    Finished(Finished),
    /// The run had finished before; nothing was done.
    AlreadyFinished(Finished),
    /// The run stopped on request and can be resumed.
    Stopped {
        /// The number of steps so far.
        step: u64,
    },
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// The step of the selected model.
    pub step: u64,
    /// The selection rule for the model.
    pub selection: Selection,
    /// The names of the classes, in the order of the logits.
    #[serde(deserialize_with = "class_names::deserialize")]
    pub classes: Vec<String>,
    /// The temperature by which its logits are divided, if one was fitted. `model.json` holds every kind of calibrator.
    pub scaling: Option<Scaling>,
    /// Why there is no calibrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncalibrated: Option<Uncalibrated>,
    /// The metrics of the model before and after calibration, one entry per split.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<Evaluation>,
    /// The heads of a run on frozen features, if it trained several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<HeadChoice>,
    /// Whether the unlabelled samples are like the held-out labels; `None` if the run keeps no reference or no held-out labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolComparison>,
    /// How often unlabelled samples were drawn; `None` without steps or unlabelled samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<Visits>,
    /// The metrics under every selection rule.
    pub finished: Finished,
}

/// The comparison of the unlabelled samples with the held-out labels that the guarantees rest on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolComparison {
    /// The verdict.
    pub verdict: PoolVerdict,
    /// The number of labels that were compared, one of each group.
    pub labels: u64,
    /// The number of unlabelled samples that they were compared with.
    pub unlabelled: u64,
    /// The p-value of the test that the labels are samples like the unlabelled ones, weighted to have their mix of classes; `None`
    /// if the weighted labels are worth fewer than 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strangeness: Option<f64>,
    /// The p-value of the test that their mix of classes is the same.
    pub mix: f64,
}

/// Whether the guarantees of a run hold for samples like its unlabelled ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolVerdict {
    /// Nothing speaks against it.
    Alike,
    /// The mix of classes is another one.
    MixDiffers,
    /// The labels are unlike the unlabelled samples.
    Unlike,
}

/// The mean number of times that a run drew each unlabelled sample: training dynamics are averages over these visits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Visits {
    /// In all steps.
    pub all: f64,
    /// Before the first step with mixtures; `None` if the run does not mix, or starts when enough samples are in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_mixing: Option<f64>,
}

/// The heads that were trained on the same vectors and labels, and the choice among them. The head of the recipe is chosen,
/// unless held-out labels are more likely under the other head by more than one standard error (two, if there are ten times
/// as many unlabelled as labelled samples). With one vector per sample there are more than two heads, and the one with the
/// highest likelihood of these labels is chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadChoice {
    /// The labels of the choice: out-of-fold ones, or those of the dataset's validation split.
    pub chosen_on: EvalSet,
    /// The difference in NLL on these labels, with its interval: the best head that uses unlabelled samples minus the head
    /// trained on the labels alone. `None` if there are too few labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nll_difference: Option<Estimate>,
    /// The error that more labels would lead to; `None` unless there is one vector per sample and some dozens of labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning_curve: Option<LearningCurve>,
    /// All heads; that of the recipe comes first if it was trained.
    pub candidates: Vec<HeadCandidate>,
}

/// The name of a head on vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadName {
    /// The head of the recipe, even if the run did not keep it.
    Recipe,
    /// The head that was trained on the labels alone.
    LabelsAlone,
    /// Logistic regression on the labels alone.
    LogisticRegression,
    /// A Gaussian mixture, fitted to all samples by EM.
    Em,
    /// A Gaussian mixture with balanced classes, fitted by EM.
    BalancedEm,
    /// The average of logistic regression and the better mixture.
    LrEm,
    /// A head on nearest neighbours.
    Neighbours,
    /// The average of logistic regression and the head on neighbours.
    LrNeighbours,
}

impl HeadChoice {
    /// Returns the chosen head.
    pub fn kept(&self) -> Option<HeadName> {
        self.candidates.iter().find(|candidate| candidate.kept).map(|candidate| candidate.name)
    }

    /// Returns whether the candidates are those for one vector per sample.
    pub fn has_one_vector(&self) -> bool {
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
            Candidate::Neighbours => Self::Neighbours,
            Candidate::LrNeighbours => Self::LrNeighbours,
        }
    }
}

impl HeadName {
    /// All names.
    pub const ALL: [Self; 8] = [
        Self::Recipe,
        Self::LabelsAlone,
        Self::LogisticRegression,
        Self::Em,
        Self::BalancedEm,
        Self::LrEm,
        Self::Neighbours,
        Self::LrNeighbours,
    ];

    /// Returns its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recipe => "recipe",
            Self::LabelsAlone => "labels-alone",
            Self::LogisticRegression => "logistic-regression",
            Self::Em => "em",
            Self::BalancedEm => "balanced-em",
            Self::LrEm => "lr-em",
            Self::Neighbours => "neighbours",
            Self::LrNeighbours => "lr-neighbours",
        }
    }

    /// Returns its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Recipe => "the recipe's",
            Self::LabelsAlone => "labels alone",
            Self::LogisticRegression => "logistic regression (labels alone)",
            Self::Em => "EM",
            Self::BalancedEm => "balanced EM",
            Self::LrEm => "LR + EM",
            Self::Neighbours => "neighbours",
            Self::LrNeighbours => "LR + neighbours",
        }
    }

    /// Returns its name within a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Recipe => "the recipe's head",
            Self::LabelsAlone => "the head trained on the labels alone",
            Self::LogisticRegression => "logistic regression on the labels alone",
            Self::Neighbours => "the head on neighbours",
            Self::Em | Self::BalancedEm | Self::LrEm | Self::LrNeighbours => self.title(),
        }
    }

    /// Returns whether it is trained on the labels alone.
    pub fn is_labels_alone(self) -> bool {
        matches!(self, Self::LabelsAlone | Self::LogisticRegression)
    }
}

/// A candidate for the head of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadCandidate {
    /// The name of the head.
    pub name: HeadName,
    /// Whether it is the chosen head.
    pub kept: bool,
    /// The mean NLL of the labels of the choice, each predicted by a head and a calibrator that were fitted without it.
    pub nll: Option<f64>,
    /// The temperature of its calibrator.
    pub temperature: Option<f64>,
    /// Its metrics, one entry per split.
    pub evaluations: Vec<Evaluation>,
}

/// The metrics of one model of a run on the split that its selection rule uses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelMetrics {
    /// The head; `None` if the run trained a whole network.
    pub head: Option<HeadName>,
    /// Whether it is the chosen model of the run.
    pub is_kept: bool,
    /// The evaluated split.
    pub on: EvalSet,
    /// The number of samples in that split.
    pub samples: u64,
    /// The metrics before calibration.
    pub metrics: Metrics,
    /// The metrics after calibration; `None` without a calibrator.
    pub calibrated: Option<Metrics>,
}

/// Returns the models of a finished run with their metrics: its network, or its heads in the order of
/// [`HeadChoice::candidates`].
pub fn model_metrics(result: &RunResult) -> Vec<ModelMetrics> {
    let Some(selected) = result.finished.selected.get(&result.selection) else { return Vec::new() };
    let on = selected.on;
    let Some(heads) = &result.heads else {
        return vec![ModelMetrics {
            head: None,
            is_kept: true,
            on,
            samples: selected.samples,
            metrics: selected.metrics,
            calibrated: of_split(&result.evaluations, on).and_then(calibrated),
        }];
    };
    let mut models = Vec::new();
    for candidate in &heads.candidates {
        let Some(evaluation) = of_split(&candidate.evaluations, on) else { continue };
        models.push(ModelMetrics {
            head: Some(candidate.name),
            is_kept: candidate.kept,
            on,
            samples: evaluation.samples,
            metrics: evaluation.metrics,
            calibrated: calibrated(evaluation),
        });
    }
    models
}

fn of_split(evaluations: &[Evaluation], split: EvalSet) -> Option<&Evaluation> {
    evaluations.iter().find(|evaluation| evaluation.split == split)
}

fn calibrated(evaluation: &Evaluation) -> Option<Metrics> {
    evaluation.calibrated.as_ref().map(|calibrated| calibrated.metrics)
}
