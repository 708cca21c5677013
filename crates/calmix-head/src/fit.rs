//! From vectors and labels to a head, its calibrator and its evidence.
//!
//! More heads are trained than one, each without a fold of the labels: the calibrator is fitted on their predictions, so that
//! no label is lost to evaluation. A head that is trained on the labels alone is evaluated in the same way, and is the result if
//! the labels out of fold are more likely under it by more than a standard error. The heads of folds have fewer labels
//! than the one they evaluate, which hurts a method more that trains on its own pseudo-labels: if the difference is not clear,
//! the head of the settings is the better choice. If there are validation samples, their labels evaluate both
//! heads, and there are no folds.

use std::collections::BTreeMap;

use calmix_core::matrix::Matrix;
use calmix_core::mixup::Pairing;
use calmix_core::pseudo::Base;
use calmix_metrics::calibrator::any_calibrator::CalibratorKind;
use calmix_metrics::calibrator::is_clearly_lower;
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator, FittedOn, TrainingLabels, Uncalibrated};
use calmix_metrics::measure::nll_of_rows;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_metrics::stats::{Estimate, paired_t_test};

use crate::error::HeadError;
use crate::folds::folds;
use crate::network::Head;
use crate::parallel;
use crate::progress::FitProgress;
use crate::samples::{HeadSamples, TrainingRows};
use crate::settings::HeadSettings;
use crate::training::{TrainedHead, train_checked};

/// The confidence level of the interval of the difference between two heads.
const LEVEL: f64 = 0.95;

/// Labelled samples that no head is trained on.
#[derive(Debug, Clone, Copy)]
pub struct ValidationSamples<'a> {
    /// The samples.
    pub ids: &'a [u64],
    /// Their vectors without augmentation.
    pub vectors: Matrix<'a>,
    /// Their classes.
    pub labels: &'a [u32],
}

/// Which head it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// The head of the settings.
    Settings,
    /// The head that is trained on the labels alone.
    LabelsAlone,
}

/// A head with its calibrator and its predictions for labels that it was trained without.
#[derive(Debug, Clone)]
pub struct FittedHead {
    /// Which head it is.
    pub candidate: Candidate,
    /// The head.
    pub trained: TrainedHead,
    /// The predictions for the validation samples, or those of the heads of folds for the labels, by ascending id.
    pub predictions: Predictions,
    /// The calibrator that was fitted on them.
    pub calibrator: Fitted,
    /// The NLL of each of these labels by a calibrator that was fitted without it.
    pub nll: Vec<f64>,
}

/// All heads that were tried.
#[derive(Debug, Clone)]
pub struct HeadFit {
    /// The heads.
    pub heads: Vec<FittedHead>,
    /// Which of them is the result.
    pub kept: usize,
    /// The NLL of the head of the settings minus that of the other one, with its interval; `None` if there is no other.
    pub nll_difference: Option<Estimate>,
}

impl HeadFit {
    /// The head that is the result.
    pub fn head(&self) -> Option<&FittedHead> {
        self.heads.get(self.kept)
    }
}

/// One head to train: of a candidate, on some rows.
struct Job {
    candidate: usize,
    settings: HeadSettings,
    rows: TrainingRows,
    /// The rows it predicts; none for the head of the candidate itself.
    held_out: Vec<usize>,
}

/// Trains the heads, on `threads` threads, calibrates them, and chooses one.
///
/// # Errors
/// If the input contradicts itself, a setting does not apply to heads, a number is not finite, or the fit has to stop.
pub fn fit(
    samples: HeadSamples<'_>,
    rows: &TrainingRows,
    validation: Option<ValidationSamples<'_>>,
    settings: &HeadSettings,
    threads: usize,
    progress: &FitProgress<'_>,
) -> Result<HeadFit, HeadError> {
    settings.check()?;
    samples.check(rows)?;
    let least = CalibratorKind::Temperature.least_labels();
    let validation = validation.filter(|validation| validation.labels.len() >= least);
    let candidates = candidates(settings);
    let jobs = jobs(&samples, rows, &candidates, validation.is_none());
    progress.begin(jobs.iter().map(|job| job.settings.steps).sum());
    let trained = parallel::run(jobs.len(), threads, |n| {
        let Job { rows, settings, .. } = &jobs[n];
        train_checked(samples, rows, settings, progress)
    });
    let trained = trained.into_iter().collect::<Result<Vec<TrainedHead>, HeadError>>()?;
    let mut heads = Vec::new();
    for (candidate, (own, of_folds)) in candidates.iter().zip(by_candidate(&samples, &jobs, trained)?) {
        let Some(trained) = own else { continue };
        let predictions = match validation {
            Some(validation) => predictions_of(&samples, validation, &trained.average, settings.steps)?,
            None => out_of_fold(&samples, of_folds, settings.steps),
        };
        heads.push(FittedHead::new(candidate.0, trained, predictions, least)?);
    }
    Ok(choose(heads))
}

/// All heads to train: those of folds, if they are needed, and that of each candidate.
fn jobs(
    samples: &HeadSamples<'_>,
    rows: &TrainingRows,
    candidates: &[(Candidate, HeadSettings)],
    needs_folds: bool,
) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (candidate, (_, settings)) in candidates.iter().enumerate() {
        let rows = TrainingRows {
            labelled: rows.labelled.clone(),
            unlabelled: if settings.unlabelled_batch == 0 { Vec::new() } else { rows.unlabelled.clone() },
        };
        let folds =
            if needs_folds { folds(samples, &rows, settings.folds, settings.seed) } else { Vec::new() };
        for held_out in folds {
            let settings = HeadSettings { log_every: 0, ..*settings };
            jobs.push(Job { candidate, settings, rows: rows.without(&held_out), held_out });
        }
        jobs.push(Job { candidate, settings: *settings, rows, held_out: Vec::new() });
    }
    jobs
}

/// The logits of rows by a head that was trained without them.
type FoldLogits = BTreeMap<usize, Vec<f32>>;

/// The head of each candidate, and the logits of its heads of folds.
fn by_candidate(
    samples: &HeadSamples<'_>,
    jobs: &[Job],
    trained: Vec<TrainedHead>,
) -> Result<Vec<(Option<TrainedHead>, FoldLogits)>, HeadError> {
    let mut candidates: Vec<(Option<TrainedHead>, FoldLogits)> = Vec::new();
    for (job, trained) in jobs.iter().zip(trained) {
        candidates.resize_with(candidates.len().max(job.candidate + 1), Default::default);
        let (own, of_folds) = &mut candidates[job.candidate];
        if job.held_out.is_empty() {
            *own = Some(trained);
        } else {
            let logits = logits_of(&trained.average, &samples.clean(&job.held_out))?;
            let logits = logits.chunks_exact(samples.classes.len().max(1)).map(<[f32]>::to_vec);
            of_folds.extend(job.held_out.iter().copied().zip(logits));
        }
    }
    Ok(candidates)
}

/// The head of the settings, and the one that is trained on the labels alone where the settings request it and it differs.
fn candidates(settings: &HeadSettings) -> Vec<(Candidate, HeadSettings)> {
    let mut candidates = vec![(Candidate::Settings, *settings)];
    let is_alone = settings.method.base == Base::Supervised && settings.method.mixup().is_none();
    if settings.labels_alone && !is_alone {
        let mut alone = *settings;
        alone.method.base = Base::Supervised;
        alone.method.mixup.pairing = Pairing::None;
        alone.unlabelled_batch = 0;
        alone.log_every = 0;
        candidates.push((Candidate::LabelsAlone, alone));
    }
    candidates
}

/// Keeps the head of the labels alone if it is clearly better, else that of the settings.
fn choose(heads: Vec<FittedHead>) -> HeadFit {
    let mut kept = 0;
    let mut nll_difference = None;
    if let [own, other] = &heads[..]
        && own.predictions.ids == other.predictions.ids
    {
        nll_difference = paired_t_test(&other.nll, &own.nll, LEVEL).ok().map(|test| test.difference);
        kept = usize::from(is_clearly_lower(&other.nll, &own.nll));
    }
    HeadFit { heads, kept, nll_difference }
}

impl FittedHead {
    fn new(
        candidate: Candidate,
        trained: TrainedHead,
        predictions: Predictions,
        least: usize,
    ) -> Result<Self, HeadError> {
        let labels = predictions.labels.len();
        let calibrator = if labels < least {
            let training_labels = TrainingLabels::TooFew;
            Fitted::Nothing(Uncalibrated { held_out: labels as u64, least: least as u64, training_labels })
        } else if predictions.split == EvalSet::Validation {
            Fitted::Map(Box::new(FittedCalibrator::fit(&predictions, FittedOn::ValidationSplit)?))
        } else {
            Fitted::Map(Box::new(FittedCalibrator::fit_out_of_fold(&predictions)?))
        };
        let nll = match calibrator.map() {
            Some(calibrator) => calibrator.cross_fit(&predictions)?.nll,
            None => nll_of_rows(predictions.matrix()?, &predictions.labels, 1.0)?,
        };
        Ok(Self { candidate, trained, predictions, calibrator, nll })
    }
}

fn logits_of(head: &Head, vectors: &[f32]) -> Result<Vec<f32>, HeadError> {
    Ok(head.forward(vectors)?.logits)
}

/// The predictions of the heads of folds for the labels, by ascending id.
fn out_of_fold(samples: &HeadSamples<'_>, rows: FoldLogits, step: u64) -> Predictions {
    let mut predictions = empty(samples, EvalSet::OutOfFold, step);
    for (row, logits) in rows {
        predictions.ids.push(samples.ids[row]);
        predictions.labels.push(samples.label(row).unwrap_or_default());
        predictions.logits.extend(logits);
    }
    predictions
}

/// The predictions of a head for the validation samples.
fn predictions_of(
    samples: &HeadSamples<'_>,
    validation: ValidationSamples<'_>,
    head: &Head,
    step: u64,
) -> Result<Predictions, HeadError> {
    let ValidationSamples { ids, vectors, labels } = validation;
    if ids.len() != labels.len() || vectors.rows() != labels.len() || vectors.width() != samples.width() {
        return Err(HeadError::Input(
            "ids, vectors and labels of the validation samples do not fit".to_owned(),
        ));
    }
    Ok(Predictions {
        ids: ids.to_vec(),
        labels: labels.to_vec(),
        logits: logits_of(head, vectors.data())?,
        ..empty(samples, EvalSet::Validation, step)
    })
}

fn empty(samples: &HeadSamples<'_>, split: EvalSet, step: u64) -> Predictions {
    Predictions {
        step,
        split,
        model: EvalModel::Ema,
        classes: samples.classes.to_vec(),
        ids: Vec::new(),
        labels: Vec::new(),
        logits: Vec::new(),
    }
}
