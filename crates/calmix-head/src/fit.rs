//! Fits a head: from vectors and labels to weights, a calibrator and held-out predictions.
//!
//! One head per fold is trained without the labels of the fold: the calibrator is fitted on their predictions, so that no label
//! is lost to evaluation. If there are validation samples, their labels evaluate the heads, and there are no folds. Samples of
//! one group are in one fold, and a group counts once. A label whose class has no label outside its fold is held out too, but the
//! head of its fold cannot know the class: it counts against the guarantees, and is left out of the calibrator and of the choice.
//! Labels that were chosen rather than drawn at random are held out in the same way, but only to find wrong ones among them.
//!
//! [`Candidates`] are the head of a method or, with one vector per sample, mixtures of Gaussians, a head on neighbours, and their
//! averages with logistic regression. A head trained on the labels alone is the control. The result is the head with the
//! lowest NLL of the labels out of fold. The control wins only if it is better by more than a standard error, or by more than two
//! if there are many unlabelled samples: the heads of folds have fewer labels than the one they evaluate, which hurts methods
//! that train on their own pseudo-labels more, and C of logistic regression is chosen on the very labels that compare it. So is
//! the mixture in the average, which favours it slightly. If no label is out of fold, as with one label per class, balanced EM is
//! the result: with so few labels the unlabelled samples decide how good a head is.

mod candidate;
mod fitted_head;
mod folds;
mod partial_labels;

use calmix_metrics::calibrator::is_lower_by;
use calmix_metrics::calibrator::temperature::{Temperature, TemperaturePrior};
use calmix_metrics::groups::{group_count, group_means};
use calmix_metrics::learning_curve::LearningCurve;
use calmix_metrics::measure::nll_of_rows;
use calmix_metrics::predictions::Predictions;
use calmix_metrics::stats::{Estimate, paired_t_test};

use crate::error::HeadError;
use crate::neighbours::Neighbours;
use crate::parallel;
use crate::progress::FitProgress;
use crate::samples::{HeadSamples, TrainingRows, ValidationSamples};
use crate::settings::{Candidates, HeadSettings};
use crate::training::TrainedHead;
pub use candidate::Candidate;
use candidate::{Training, candidates};
pub use fitted_head::FittedHead;
use fitted_head::{
    FoldLogits, HeldOutLabels, chosen_labels, mean, min_labels, out_of_fold, predictions_of, unseen_labels,
};
use folds::{Folds, folds};
use partial_labels::{Part, learning_curve};

/// The confidence level of the interval of the difference between two heads.
const LEVEL: f64 = 0.95;
/// The index into the strengths of logistic regression if no label is held out to choose C by: C = 10.
const DEFAULT_C_INDEX: usize = 2;

/// All heads that were tried.
#[derive(Debug, Clone)]
pub struct HeadFit {
    /// The heads.
    pub heads: Vec<FittedHead>,
    /// The index of the head that is the result.
    pub selected: usize,
    /// The NLL of the best head that uses unlabelled samples minus that of the labels alone, with its interval; `None` if one of
    /// them is missing. The best of several is chosen by the same NLL, which favours it slightly.
    pub nll_difference: Option<Estimate>,
    /// The error that more labels would lead to; `None` unless there is one vector per sample and some dozens of labels.
    pub learning_curve: Option<LearningCurve>,
}

impl HeadFit {
    /// Returns the head that is the result.
    pub fn head(&self) -> Option<&FittedHead> {
        self.heads.get(self.selected)
    }

    /// Returns the configured head, even if another one is the result; `None` if it was not trained.
    pub fn configured(&self) -> Option<&FittedHead> {
        self.heads.iter().find(|head| head.candidate == Candidate::Settings)
    }
}

/// The training of one candidate on some rows.
struct Job {
    candidate: usize,
    training: Training,
    rows: TrainingRows,
    /// The rows of the fold that the head predicts; empty for the head that is trained on all rows.
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
    if !samples.weights.is_empty() && settings.candidates == Candidates::Method {
        return Err(HeadError::Setting(
            "weights of labels apply to heads on one vector per sample, not to a method with weak and strong views",
        ));
    }
    // A fold has fewer labels, but its head must mix if the head that it evaluates does.
    let settings = &settings.for_labels(rows.labelled.len(), samples.classes.len());
    // Too few validation labels for a calibrator are not used; the labels are then divided into folds.
    let is_enough = |validation: &ValidationSamples<'_>| {
        group_count(validation.groups, validation.labels.len()) >= min_labels()
    };
    let validation = validation.filter(is_enough);
    let has_unlabelled = settings.unlabelled_batch > 0 && !rows.unlabelled.is_empty();
    let mut neighbours = None;
    if settings.candidates == Candidates::OneVector && settings.neighbours && has_unlabelled {
        neighbours = Neighbours::new(&samples, rows, settings.seed, threads, progress)?;
    }
    let candidates = candidates(settings, has_unlabelled, neighbours);
    let folds = if validation.is_none() {
        folds(&samples, rows, fold_count(rows.labelled.len(), settings.folds), settings.seed)
    } else {
        Folds::default()
    };
    let jobs = jobs(rows, &candidates, &folds.rows);
    progress.begin(jobs.iter().map(|job| job.training.steps()).sum());
    let trained = parallel::run(jobs.len(), threads, |n| {
        let Job { rows, training, .. } = &jobs[n];
        training.heads(samples, rows, progress)
    });
    let trained = trained.into_iter().collect::<Result<Vec<Vec<TrainedHead>>, HeadError>>()?;
    let mut heads = Vec::new();
    let mut parts = Vec::new();
    for ((candidate, training), variants) in
        candidates.iter().zip(by_candidate(&samples, &jobs, trained, progress)?)
    {
        let mut tried = Vec::new();
        for Variant { trained, of_folds } in variants {
            let Some(trained) = trained else { continue };
            progress.check_stop()?;
            // With a validation split there are no folds, so these are empty.
            let unseen = unseen_labels(&samples, &of_folds, &folds.unseen);
            let chosen = chosen_labels(&samples, &of_folds, &folds.unseen, settings.steps);
            let predictions = if let Some(validation) = validation {
                predictions_of(&samples, validation, &trained.ema, settings.steps)?
            } else {
                out_of_fold(&samples, of_folds, &folds.unseen, settings.steps)
            };
            tried.push((trained, HeldOutLabels { predictions, unseen, chosen }));
        }
        let mut nll = Vec::new();
        if tried.len() > 1 {
            for (_, held_out) in &tried {
                progress.check_stop()?;
                nll.push(nll_after_temperature(&held_out.predictions)?);
            }
        }
        let best = if tried.len() == 1 { 0 } else { lowest(&nll).unwrap_or(DEFAULT_C_INDEX) };
        if best < tried.len() {
            let (trained, held_out) = tried.swap_remove(best);
            let head = FittedHead::new(*candidate, trained, held_out, progress)?;
            parts.push(Part { training: training.clone(), variant: best, temperature: head.temperature() });
            heads.push(head);
        }
    }
    for candidate in [Candidate::LrEm, Candidate::LrNeighbours] {
        if let Some((first, second)) = to_average(candidate, &heads) {
            heads.push(FittedHead::average(candidate, &heads[first], &heads[second], progress)?);
        }
    }
    let mut fit = choose(heads, needed_standard_errors(rows));
    if settings.candidates == Candidates::OneVector && validation.is_none() {
        fit.learning_curve =
            curve_of_kept(&fit, &parts, (&samples, rows, folds.rows.len()), settings, threads, progress)?;
    }
    Ok(fit)
}

/// Returns the number of folds. With many labels, five folds are as good as ten and take half the time.
fn fold_count(labels: usize, configured: usize) -> usize {
    const MANY_LABELS: usize = 10_000;
    const MAX_FOLDS_WITH_MANY_LABELS: usize = 5;
    if labels >= MANY_LABELS { configured.min(MAX_FOLDS_WITH_MANY_LABELS) } else { configured }
}

/// Returns all trainings: for each candidate, one per fold and one on all rows.
fn jobs(rows: &TrainingRows, candidates: &[(Candidate, Training)], folds: &[Vec<usize>]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (candidate, (_, training)) in candidates.iter().enumerate() {
        let needs_unlabelled = match training {
            Training::Steps(settings) => settings.unlabelled_batch > 0,
            Training::LogisticRegression => false,
            Training::GaussianMixture(_) | Training::Neighbours(_) => true,
        };
        let rows = TrainingRows {
            labelled: rows.labelled.clone(),
            unlabelled: if needs_unlabelled { rows.unlabelled.clone() } else { Vec::new() },
        };
        for held_out in folds {
            let training = training.without_log();
            let rows = rows.without_labels(held_out);
            jobs.push(Job { candidate, training, rows, held_out: held_out.clone() });
        }
        jobs.push(Job { candidate, training: training.clone(), rows, held_out: Vec::new() });
    }
    jobs
}

/// The heads of a candidate at one setting: the one trained on all rows, and the logits of those of the folds.
#[derive(Default)]
struct Variant {
    /// The head that is trained on all rows.
    trained: Option<TrainedHead>,
    of_folds: FoldLogits,
}

/// Groups the trained heads by candidate.
fn by_candidate(
    samples: &HeadSamples<'_>,
    jobs: &[Job],
    trained: Vec<Vec<TrainedHead>>,
    progress: &FitProgress<'_>,
) -> Result<Vec<Vec<Variant>>, HeadError> {
    let mut candidates: Vec<Vec<Variant>> = Vec::new();
    for (job, trained) in jobs.iter().zip(trained) {
        candidates.resize_with(candidates.len().max(job.candidate + 1), Default::default);
        let variants = &mut candidates[job.candidate];
        variants.resize_with(variants.len().max(trained.len()), Default::default);
        for (variant, trained) in variants.iter_mut().zip(trained) {
            progress.check_stop()?;
            if job.held_out.is_empty() {
                variant.trained = Some(trained);
            } else {
                let logits = trained.ema.forward(&samples.unaugmented(&job.held_out)?)?.logits;
                let logits = logits.chunks_exact(samples.classes.len().max(1)).map(<[f32]>::to_vec);
                variant.of_folds.extend(job.held_out.iter().copied().zip(logits));
            }
        }
    }
    Ok(candidates)
}

/// Computes the mean NLL of the labels at their most probable temperature; `None` without labels. A calibrator corrects the
/// confidence, so heads are compared after it. The temperature is fitted on these labels: one number flatters all variants alike,
/// and a cross-fit of each would cost as much as training it.
fn nll_after_temperature(predictions: &Predictions) -> Result<Option<f64>, HeadError> {
    let logits = predictions.matrix()?;
    let labels = &predictions.labels;
    if labels.is_empty() {
        return Ok(None);
    }
    let temperature = Temperature::fit_with_prior(logits, labels, TemperaturePrior::HEADS)?;
    let nll = nll_of_rows(logits, labels, temperature.value())?;
    Ok(mean(&group_means(&nll, &predictions.groups)))
}

/// Returns the indices of the heads that a candidate averages, if both were trained: logistic regression and the head on neighbours,
/// or the better mixture.
fn to_average(candidate: Candidate, heads: &[FittedHead]) -> Option<(usize, usize)> {
    let index = |candidate: Candidate| heads.iter().position(|head| head.candidate == candidate);
    let regression = index(Candidate::LogisticRegression);
    match candidate {
        Candidate::LrNeighbours => return Some((regression?, index(Candidate::Neighbours)?)),
        Candidate::LrEm => {}
        _ => return None,
    }
    let [plain, balanced] = [Candidate::Em, Candidate::BalancedEm].map(index);
    let (plain, balanced) = (plain?, balanced?);
    let nll = [heads[plain].mean_nll(), heads[balanced].mean_nll()];
    let mixture = if lowest(&nll) == Some(1) { balanced } else { plain };
    Some((regression?, mixture))
}

/// Trains the kept kind of head on part of the labels; `parts` are the heads that are no average, in the order of the fit's.
fn curve_of_kept(
    fit: &HeadFit,
    parts: &[Part],
    (samples, rows, fold_count): (&HeadSamples<'_>, &TrainingRows, usize),
    settings: &HeadSettings,
    threads: usize,
    progress: &FitProgress<'_>,
) -> Result<Option<LearningCurve>, HeadError> {
    let Some(kept) = fit.head() else { return Ok(None) };
    let kept_parts = match to_average(kept.candidate, &fit.heads) {
        Some((first, second)) => vec![&parts[first], &parts[second]],
        None => vec![&parts[fit.selected]],
    };
    learning_curve(kept, &kept_parts, (samples, rows, fold_count), settings.seed, threads, progress)
}

/// Returns the index of the lowest number, the first of equals; `None` if there is no number.
fn lowest(numbers: &[Option<f64>]) -> Option<usize> {
    let numbers = numbers.iter().enumerate().filter_map(|(n, number)| number.map(|number| (n, number)));
    numbers.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(n, _)| n)
}

/// Returns the number of standard errors by which the head on labels alone must win to replace the configured head.
fn needed_standard_errors(rows: &TrainingRows) -> f64 {
    /// Unlabelled samples per label from which the method is favoured.
    const MIN_UNLABELLED_PER_LABEL: usize = 10;
    if rows.unlabelled.len() >= MIN_UNLABELLED_PER_LABEL * rows.labelled.len() { 2.0 } else { 1.0 }
}

/// Chooses the result, and compares the best head that uses unlabelled samples with the one on labels alone.
fn choose(heads: Vec<FittedHead>, standard_errors: f64) -> HeadFit {
    let nll: Vec<Option<f64>> = heads.iter().map(FittedHead::mean_nll).collect();
    let alone = heads.iter().position(|head| head.candidate.is_labels_alone());
    let mut nll_of_others = nll.clone();
    alone.and_then(|alone| nll_of_others.get_mut(alone)).into_iter().for_each(|nll| *nll = None);
    let other = lowest(&nll_of_others);
    let pair = other.and_then(|n| heads.get(n)).zip(alone.and_then(|n| heads.get(n)));
    let pair = pair.filter(|(other, alone)| other.predictions.ids == alone.predictions.ids);
    let is_alone_better = pair.is_some_and(|(other, alone)| {
        is_lower_by(standard_errors, &alone.nll, &other.nll, &other.predictions.groups)
    });
    let best = if is_alone_better { alone } else { other };
    let untested = heads.iter().position(|head| head.candidate == Candidate::BalancedEm);
    let selected = best.or(untested).unwrap_or(0);
    let nll_difference = pair.and_then(|(other, alone)| {
        paired_t_test(&alone.nll_of_groups(), &other.nll_of_groups(), LEVEL).ok().map(|test| test.difference)
    });
    HeadFit { heads, selected, nll_difference, learning_curve: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_labels_use_fewer_folds() {
        assert_eq!([9_999, 10_000].map(|labels| fold_count(labels, 10)), [10, 5]);
        assert_eq!(fold_count(50_000, 3), 3);
    }

    #[test]
    fn many_unlabelled_samples_favour_the_method() {
        let rows = |labelled: usize, unlabelled: usize| TrainingRows {
            labelled: (0..labelled).collect(),
            unlabelled: (0..unlabelled).collect(),
        };
        assert_eq!(needed_standard_errors(&rows(40, 399)), 1.0);
        assert_eq!(needed_standard_errors(&rows(40, 400)), 2.0);
    }
}
