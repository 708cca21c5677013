//! The kept kind of head, trained on half and three quarters of the labels: how its error falls says what more labels would bring.

use std::collections::BTreeMap;

use calmix_core::rng::Seed;
use calmix_core::softmax::argmax;
use calmix_metrics::groups::{group_means, select_groups};
use calmix_metrics::learning_curve::{HeldOutErrors, LearningCurve};

use super::candidate::Training;
use super::fitted_head::{FittedHead, average};
use super::folds::folds;
use crate::error::HeadError;
use crate::parallel;
use crate::progress::FitProgress;
use crate::samples::{HeadSamples, TrainingRows};

/// The training of the kept head, or of one of the two heads that it averages.
pub(super) struct Part {
    pub(super) training: Training,
    /// The index of the kept strength of logistic regression.
    pub(super) variant: usize,
    pub(super) temperature: f64,
}

/// Two folds train on half of the labels, four on three quarters. Halves vary more, so they are drawn twice.
const FOLDS: [(usize, u64); 2] = [(2, 2), (4, 1)];
/// Fewer held-out labels say nothing. Who has more than the maximum has ceased to label, or can train on part of them.
const LABELS: std::ops::RangeInclusive<usize> = 20..=2_000;
/// With more samples, the additional heads would take minutes.
const MAX_SAMPLES: usize = 50_000;

/// A head that is trained without the labels of a fold.
struct Job {
    rows: TrainingRows,
    held_out: Vec<usize>,
}

/// Returns the error with more labels; `None` if there are too few labels, or so many that the answer would take long.
pub(super) fn learning_curve(
    kept: &FittedHead,
    parts: &[&Part],
    (samples, rows, fold_count): (&HeadSamples<'_>, &TrainingRows, usize),
    seed: Seed,
    threads: usize,
    progress: &FitProgress<'_>,
) -> Result<Option<LearningCurve>, HeadError> {
    let evaluated = kept.predictions.labels.len() + kept.unseen.len();
    let samples_used = rows.labelled.len() + rows.unlabelled.len();
    if !LABELS.contains(&evaluated) || rows.labelled.len() > *LABELS.end() || samples_used > MAX_SAMPLES {
        return Ok(None);
    }
    let mut errors = Vec::new();
    for (count, draws) in FOLDS {
        let mut jobs = Vec::new();
        for draw in 0..draws {
            for held_out in folds(samples, rows, count, seed.child(draw)).rows {
                jobs.push(Job { rows: rows.without_labels(&held_out), held_out });
            }
        }
        progress.extend((jobs.len() * parts.len()) as u64);
        let wrong = parallel::run(jobs.len(), threads, |n| wrong_rows(parts, samples, &jobs[n], progress));
        let mut of_rows: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for wrong in wrong {
            for (row, wrong) in wrong? {
                of_rows.entry(row).or_default().push(wrong);
            }
        }
        let trained: usize = jobs.iter().map(|job| job.rows.labelled.len()).sum();
        errors.push((trained as f64 / jobs.len().max(1) as f64, mean_of_rows(&of_rows)));
    }
    let of_kept = errors_of_kept(kept, samples);
    let held_out: Vec<usize> = of_kept.keys().copied().collect();
    errors.push((rows.labelled.len() as f64 * (1.0 - 1.0 / fold_count as f64), of_kept));
    let groups = select_groups(samples.groups, &held_out);
    let mut points = Vec::new();
    for (labels, wrong) in errors {
        // Without two labels of any class there are no folds.
        let wrong: Option<Vec<f64>> = held_out.iter().map(|row| wrong.get(row).copied()).collect();
        let Some(wrong) = wrong else { return Ok(None) };
        points.push(HeldOutErrors { labels, wrong: group_means(&wrong, &groups) });
    }
    Ok(LearningCurve::fit(&points, rows.labelled.len() as u64, seed)?)
}

/// Trains without the labels of a fold; returns for each of its rows whether the prediction is wrong, as 1 or 0.
fn wrong_rows(
    parts: &[&Part],
    samples: &HeadSamples<'_>,
    job: &Job,
    progress: &FitProgress<'_>,
) -> Result<Vec<(usize, f64)>, HeadError> {
    let vectors = samples.unaugmented(&job.held_out)?;
    let mut logits: Vec<(Vec<f32>, f64)> = Vec::new();
    for part in parts {
        let mut heads = part.training.without_log().heads(*samples, &job.rows, progress)?;
        let head = heads.swap_remove(part.variant.min(heads.len() - 1));
        logits.push((head.ema.forward(&vectors)?.logits, part.temperature));
    }
    let logits = match logits.as_slice() {
        [(first, a), (second, b)] => average(first, second, [*a, *b]),
        [(logits, _), ..] => logits.clone(),
        [] => Vec::new(),
    };
    let rows = logits.chunks_exact(samples.classes.len().max(1));
    let is_wrong =
        |(&row, logits): (&usize, &[f32])| (row, wrong(logits, samples.label(row).unwrap_or_default()));
    Ok(job.held_out.iter().zip(rows).map(is_wrong).collect())
}

/// Returns whether the heads of folds of the fit were wrong. A class that the head of the fold does not know is.
fn errors_of_kept(kept: &FittedHead, samples: &HeadSamples<'_>) -> BTreeMap<usize, f64> {
    let classes = samples.classes.len().max(1);
    let predicted = kept.predictions.ids.iter().zip(&kept.predictions.labels);
    let predicted = predicted.zip(kept.predictions.logits.chunks_exact(classes));
    let mut of_ids: Vec<(u64, f64)> =
        predicted.map(|((&id, &label), logits)| (id, wrong(logits, label))).collect();
    of_ids.extend(kept.unseen.iter().map(|unseen| (unseen.id, 1.0)));
    let row = |id: u64| samples.ids.binary_search(&id).unwrap_or_default();
    of_ids.into_iter().map(|(id, wrong)| (row(id), wrong)).collect()
}

fn mean_of_rows(of_rows: &BTreeMap<usize, Vec<f64>>) -> BTreeMap<usize, f64> {
    of_rows.iter().map(|(&row, wrong)| (row, wrong.iter().sum::<f64>() / wrong.len() as f64)).collect()
}

fn wrong(logits: &[f32], label: u32) -> f64 {
    f64::from(u8::from(argmax(logits) != label as usize))
}
