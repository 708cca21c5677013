//! The heads that are compared, and how each is trained.

use std::sync::Arc;

use calmix_core::mixup::Pairing;
use calmix_core::pseudo::Base;
use calmix_metrics::margins::SampleMargins;

use crate::error::HeadError;
use crate::gaussian_mixture::{GaussianMixture, gaussian_mixture};
use crate::logistic_regression::{MIN_GAIN, STRENGTHS, logistic_regression};
use crate::neighbours::Neighbours;
use crate::network::Head;
use crate::progress::FitProgress;
use crate::samples::{HeadSamples, TrainingRows};
use crate::settings::{Candidates, HeadSettings};
use crate::training::{TrainedHead, train_checked};

/// The kinds of heads that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// The configured head.
    Settings,
    /// The configured head, trained without the unlabelled samples.
    LabelsAlone,
    /// Logistic regression, on the labels alone.
    LogisticRegression,
    /// A mixture of Gaussians.
    Em,
    /// A mixture of Gaussians whose classes are balanced.
    BalancedEm,
    /// The average of logistic regression and the better of the mixtures.
    LrEm,
    /// A head that labels spread to over a graph of nearest neighbours.
    Neighbours,
    /// The average of logistic regression and the head on neighbours.
    LrNeighbours,
}

impl Candidate {
    /// Returns whether it is trained on the labels alone.
    pub fn is_labels_alone(self) -> bool {
        matches!(self, Self::LabelsAlone | Self::LogisticRegression)
    }
}

/// The training of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Training {
    Steps(Box<HeadSettings>),
    LogisticRegression,
    GaussianMixture(GaussianMixture),
    Neighbours(Arc<Neighbours>),
}

/// Returns the heads to train. [`Candidate::LrEm`] and [`Candidate::LrNeighbours`] are not among them: they are averages of two others.
pub(crate) fn candidates(
    settings: &HeadSettings,
    has_unlabelled: bool,
    neighbours: Option<Neighbours>,
) -> Vec<(Candidate, Training)> {
    let configured = (Candidate::Settings, Training::Steps(Box::new(*settings)));
    match settings.candidates {
        Candidates::Method => {
            let is_alone = settings.method.base == Base::Supervised && settings.method.mixup().is_none();
            let alone = (Candidate::LabelsAlone, Training::Steps(Box::new(labels_alone(settings))));
            if settings.labels_alone && !is_alone { vec![configured, alone] } else { vec![configured] }
        }
        Candidates::OneVector => {
            let mut candidates = vec![(Candidate::LogisticRegression, Training::LogisticRegression)];
            if has_unlabelled {
                let plain = Training::GaussianMixture(GaussianMixture::PLAIN);
                candidates.push((Candidate::Em, plain));
                let balanced = Training::GaussianMixture(GaussianMixture::BALANCED);
                candidates.push((Candidate::BalancedEm, balanced));
            }
            if let Some(neighbours) = neighbours {
                candidates.push((Candidate::Neighbours, Training::Neighbours(Arc::new(neighbours))));
            }
            candidates
        }
    }
}

fn labels_alone(settings: &HeadSettings) -> HeadSettings {
    let mut alone = *settings;
    alone.method.base = Base::Supervised;
    alone.method.mixup.pairing = Pairing::None;
    alone.unlabelled_batch = 0;
    alone.log_every = 0;
    alone
}

impl Training {
    /// Returns the same training without a log, for the head of a fold.
    pub(crate) fn without_log(&self) -> Self {
        match self {
            Self::Steps(settings) => Self::Steps(Box::new(HeadSettings { log_every: 0, ..**settings })),
            other => other.clone(),
        }
    }

    /// Returns the number of steps that it adds to the progress of a fit.
    pub(crate) fn steps(&self) -> u64 {
        match self {
            Self::Steps(settings) => settings.steps,
            Self::LogisticRegression | Self::GaussianMixture(_) | Self::Neighbours(_) => 1,
        }
    }

    /// Trains on some rows: one head for each C of logistic regression, otherwise a single one.
    pub(crate) fn heads(
        &self,
        samples: HeadSamples<'_>,
        rows: &TrainingRows,
        progress: &FitProgress<'_>,
    ) -> Result<Vec<TrainedHead>, HeadError> {
        let heads = match self {
            Self::Steps(settings) => return Ok(vec![train_checked(samples, rows, settings, progress)?]),
            Self::LogisticRegression => logistic_regression(samples, rows, &STRENGTHS, MIN_GAIN, progress)?,
            Self::GaussianMixture(settings) => vec![gaussian_mixture(samples, rows, *settings, progress)?],
            Self::Neighbours(neighbours) => vec![neighbours.head(&samples, rows, progress)?],
        };
        progress.step();
        Ok(heads.into_iter().map(TrainedHead::without_steps).collect())
    }
}

impl TrainedHead {
    /// Wraps a head that was not trained step by step: it has no log, and its EMA is the head itself.
    pub(crate) fn without_steps(head: Head) -> Self {
        Self { weights: head.clone(), ema: head, log: Vec::new(), margins: SampleMargins::default() }
    }
}
