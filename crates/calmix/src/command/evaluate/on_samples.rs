//! `calmix evaluate RUN --on FOLDER`: the metrics of a model on labelled samples from outside its run.

use std::path::Path;

use anyhow::Result;
use calmix_core::rng::Seed;
use calmix_data::dataset::Dataset;
use calmix_io::shown::shown;
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::evaluate::evaluate;
use calmix_metrics::measure::VoteMetrics;
use calmix_metrics::metrics::Resampling;
use calmix_metrics::predictions::Predictions;
use calmix_run::read;
use serde_json::json;

use crate::args::evaluate::EvaluateArgs;
use crate::command::evaluate::votes::Votes;
use crate::labelled::{LabelledPredictions, TrainedLabels};
use crate::output::format::{counted, decimal, percent};
use crate::output::metric_table::{self, CalibratorState};
use crate::predict::input::InputKind;
use crate::predict::prediction_rule::PredictionRule;
use crate::terminal::{print, print_json, warn};

/// The measured coverage and precision on labelled samples; `None` without held-out labels.
struct MeasuredGuarantees {
    /// The share of prediction sets that contain the true class, and the mean size of the sets.
    sets: Option<(f64, f64)>,
    /// The share of the samples that are answered, and the share of the answers that are right.
    answers: Option<(f64, Option<f64>)>,
}

/// A model that is evaluated on labelled samples.
#[derive(Debug)]
pub(crate) struct EvaluationOn<'a> {
    args: &'a EvaluateArgs,
    path: &'a Path,
    kind: InputKind,
    rule: &'a PredictionRule,
    votes: Option<Votes>,
    labels: TrainedLabels,
}

impl<'a> EvaluationOn<'a> {
    /// Reads the votes on the samples of `dataset`, which was read from `path`. Warns if the model was trained or calibrated on
    /// the samples.
    pub(crate) fn new(
        args: &'a EvaluateArgs,
        path: &'a Path,
        kind: InputKind,
        rule: &'a PredictionRule,
        dataset: &Dataset,
    ) -> Result<Self> {
        let subset = args.on.subset.as_deref();
        let classes = &rule.info().classes;
        let votes = args.on.votes.as_deref();
        let votes = votes.map(|file| Votes::read(file, dataset, subset, classes, kind)).transpose()?;
        let labels = TrainedLabels::find(&args.run, path, dataset, subset, kind)?;
        if let Some(trained) = labels.sentence() {
            warn(&format!(
                "{trained}, so these metrics are optimistic: evaluate on {}s that it was not trained on",
                kind.word()
            ));
        }
        let origin = rule.info().calibration.as_ref().and_then(|map| map.origin.as_ref());
        if origin.is_some_and(|origin| origin.dataset == dataset.fingerprint()) {
            let samples = kind.word();
            warn(&format!(
                "the model was calibrated on these {samples}s, so the calibrated metrics are optimistic"
            ));
        }
        Ok(Self { args, path, kind, rule, votes, labels })
    }

    /// Returns the samples to predict.
    pub(crate) fn ids(&self) -> &[u64] {
        self.labels.labelled()
    }

    /// Computes and prints the metrics of the model's predictions.
    pub(crate) fn show(&self, found: &LabelledPredictions) -> Result<()> {
        let Self { args, path, kind, rule, votes, labels } = self;
        let run = &args.run;
        let LabelledPredictions { predictions, skipped, .. } = found;
        let calibration = rule.info().calibration.as_ref();
        let mut evaluation = evaluate(predictions, calibration, Some((Resampling::default(), Seed(0))))?;
        evaluation.skipped = *skipped;
        let guarantees = measured_guarantees(rule, predictions)?;
        let map = calibration.map_or(&Calibrator::IDENTITY, |fitted| &fitted.calibrator);
        let votes = votes.as_ref().map(|votes| votes.compare(predictions, map)).transpose()?;
        if args.json {
            let votes_json = |(raw, calibrated): &(VoteMetrics, VoteMetrics)| {
                json!({
                    "samples": raw.samples, "entropy": raw.entropy, "cross_entropy": raw.cross_entropy,
                    "calibrated_cross_entropy": calibrated.cross_entropy, "correlation": calibrated.correlation,
                })
            };
            return print_json(&json!({
                "run": run.display().to_string(),
                "on": path.display().to_string(),
                "subset": args.on.subset,
                "checked_against_training": labels.is_checked(),
                "trained_on": labels.trained(),
                "calibration": calibration,
                "evaluation": evaluation,
                "sets": guarantees.sets.map(|(coverage, size)| json!({"coverage": coverage, "size": size})),
                "answers": guarantees.answers.map(|(share, right)| json!({"share": share, "precision": right})),
                "votes": votes.as_ref().map(votes_json),
            }));
        }
        let why = read::result(run)?.and_then(|result| result.uncalibrated);
        let state = CalibratorState::Ended(why.as_ref());
        let table = metric_table::table(&[&evaluation], state, *kind).unwrap_or_default();
        let on = shown(path.display());
        print(&format!(
            "on {on}\n\n{table}{}{}",
            guarantees.text(*kind),
            votes.map(|votes| votes_text(&votes, *kind)).unwrap_or_default()
        ))
    }
}

impl MeasuredGuarantees {
    fn text(&self, kind: InputKind) -> String {
        let word = kind.word();
        let sets = self.sets.map(|(coverage, size)| {
            format!(
                "90% prediction sets: {} contain the true class, {size:.2} classes on average\n",
                percent(coverage, None)
            )
        });
        let answers = self.answers.map(|(share, right)| match right {
            Some(right) => format!(
                "90% precision: {} of the {word}s are answered, and {} of the answers are right\n",
                percent(share, None),
                percent(right, None)
            ),
            None => format!("90% precision: no {word} is answered\n"),
        });
        format!("{}{}", sets.unwrap_or_default(), answers.unwrap_or_default())
    }
}

fn measured_guarantees(rule: &PredictionRule, predictions: &Predictions) -> Result<MeasuredGuarantees> {
    let n = predictions.labels.len().max(1) as f64;
    let (mut held, mut size, mut answered, mut right) = (0.0, 0.0, 0.0, 0.0);
    for (logits, &label) in predictions.matrix()?.iter().zip(&predictions.labels) {
        let prediction = rule.prediction(logits)?;
        let set = prediction.set.unwrap_or_default();
        held += f64::from(u8::from(set.contains(&label)));
        size += set.len() as f64;
        if prediction.abstain == Some(false) {
            answered += 1.0;
            right += f64::from(u8::from(prediction.label == label as usize));
        }
    }
    let guaranteed = rule.guarantee().sets().is_some();
    Ok(MeasuredGuarantees {
        sets: guaranteed.then_some((held / n, size / n)),
        answers: guaranteed.then_some((answered / n, (answered > 0.0).then(|| right / answered))),
    })
}

/// The rank correlation below which the agreement counts as weak.
const WEAK_CORRELATION: f64 = 0.2;

fn votes_text((raw, scaled): &(VoteMetrics, VoteMetrics), kind: InputKind) -> String {
    let doubts = match scaled.correlation {
        Some(correlation) if (0.0..WEAK_CORRELATION).contains(&correlation) => {
            format!("it is hardly less confident where voters disagree (rank correlation {correlation:.2})")
        }
        Some(correlation) if correlation >= WEAK_CORRELATION => {
            format!("it is less confident where voters disagree (rank correlation {correlation:.2})")
        }
        Some(correlation) => {
            format!("it is not less confident where voters disagree (rank correlation {correlation:.2})")
        }
        None => {
            format!("its confidence, or the agreement of the voters, is the same on every {}", kind.word())
        }
    };
    format!(
        "against human votes on {}: cross-entropy {} uncalibrated, {} calibrated; entropy of the votes {};\n{doubts}\n",
        counted(raw.samples as u64, kind.word()),
        decimal(raw.cross_entropy, None),
        decimal(scaled.cross_entropy, None),
        decimal(raw.entropy, None)
    )
}
