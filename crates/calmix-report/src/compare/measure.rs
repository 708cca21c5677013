//! The runs to compare, with their metrics.

use std::collections::BTreeMap;

use calmix_metrics::metrics::{MIN_SAMPLES_FOR_ECE, Metrics};
use calmix_metrics::predictions::EvalSet;
use calmix_run::result::HeadName;
use serde::Serialize;

/// The data of a finished run for a comparison.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    pub name: String,
    /// Every key that affects training, except the seeds, with its value as text.
    pub settings: BTreeMap<String, String>,
    pub fingerprint: String,
    /// The seed of all randomness, and the seed of the draw of labels.
    pub seeds: (u64, u64),
    /// Whether the paper's tables have a row for this setting.
    pub is_in_paper: bool,
    /// Whether the model was both selected and evaluated on the test split.
    pub chosen_on_test: bool,
    pub on: EvalSet,
    pub samples: u64,
    /// The head that the metrics belong to, if the run has heads.
    pub head: Option<HeadName>,
    /// Its metrics before calibration.
    pub metrics: Metrics,
    /// Its metrics after calibration, if any.
    pub calibrated: Option<Metrics>,
}

/// A metric for comparison; lower is better, except for macro F1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The expected calibration error with 15 bins, for at least [`MIN_SAMPLES_FOR_ECE`] samples.
    Ece,
    /// The share of wrong predictions.
    Error,
    /// The mean error of the classes.
    BalancedError,
    /// The mean F1 of the classes; higher is better.
    MacroF1,
    /// The mean negative log-likelihood, in nats.
    Nll,
    /// The Brier score, summed over classes.
    Brier,
    /// The debiased squared calibration error.
    Debiased,
    /// The ECE after calibration.
    CalibratedEce,
    /// The negative log-likelihood after calibration.
    CalibratedNll,
    /// The Brier score after calibration.
    CalibratedBrier,
    /// The debiased squared calibration error after calibration.
    CalibratedDebiased,
}

impl Measure {
    pub const ALL: [Self; 11] = [
        Self::Ece,
        Self::Error,
        Self::BalancedError,
        Self::MacroF1,
        Self::Nll,
        Self::Brier,
        Self::Debiased,
        Self::CalibratedEce,
        Self::CalibratedNll,
        Self::CalibratedBrier,
        Self::CalibratedDebiased,
    ];

    /// The measures whose differences are tested. There are only two, since each further test costs power under Holm's
    /// correction.
    pub const TESTED: [Self; 2] = [Self::Ece, Self::Error];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ece => "ECE",
            Self::Error => "Error",
            Self::BalancedError => "balanced error",
            Self::MacroF1 => "macro F1",
            Self::Nll => "NLL",
            Self::Brier => "Brier",
            Self::Debiased => "debiased squared CE",
            Self::CalibratedEce => "ECE, calibrated",
            Self::CalibratedNll => "NLL, calibrated",
            Self::CalibratedBrier => "Brier, calibrated",
            Self::CalibratedDebiased => "debiased squared CE, calibrated",
        }
    }

    /// Returns the scale of the tables: shares are in per cent, squared shares in per cent squared.
    pub(crate) fn scale(self) -> f64 {
        match self {
            Self::Ece | Self::Error | Self::BalancedError | Self::MacroF1 | Self::CalibratedEce => 100.0,
            Self::Debiased | Self::CalibratedDebiased => 1e4,
            Self::Nll | Self::Brier | Self::CalibratedNll | Self::CalibratedBrier => 1.0,
        }
    }

    /// Returns whether it counts every class the same: of even classes, it repeats the error.
    pub(super) fn is_balanced(self) -> bool {
        matches!(self, Self::BalancedError | Self::MacroF1)
    }

    /// Returns the number of decimals in tables.
    pub(crate) fn digits(self) -> usize {
        if self.scale() == 1.0 { 3 } else { 2 }
    }

    /// Returns the value for a run; `None` with too few samples.
    pub(super) fn of(self, run: &ComparedRun) -> Option<f64> {
        let enough = run.samples >= MIN_SAMPLES_FOR_ECE;
        let calibrated = run.calibrated;
        match self {
            Self::Ece => enough.then_some(run.metrics.ece_15),
            Self::Error => Some(run.metrics.error),
            Self::BalancedError => run.metrics.balanced_error,
            Self::MacroF1 => run.metrics.macro_f1,
            Self::Nll => Some(run.metrics.nll),
            Self::Brier => Some(run.metrics.brier),
            Self::Debiased => run.metrics.debiased_squared_error.filter(|_| enough),
            Self::CalibratedEce => calibrated.filter(|_| enough).map(|metrics| metrics.ece_15),
            Self::CalibratedNll => calibrated.map(|metrics| metrics.nll),
            Self::CalibratedBrier => calibrated.map(|metrics| metrics.brier),
            Self::CalibratedDebiased => {
                calibrated.filter(|_| enough).and_then(|metrics| metrics.debiased_squared_error)
            }
        }
    }
}
