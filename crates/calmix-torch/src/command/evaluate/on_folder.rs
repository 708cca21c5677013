//! `calmix evaluate RUN --on FOLDER`: the model of a run on any labelled images.

use std::path::Path;

use anyhow::Result;
use calmix::command::data_args::existing_folder;
use calmix::command::evaluate_args::OnArgs;
use calmix::core::rng::Seed;
use calmix::exit::Exit;
use calmix::format::{counted, decimal, percent};
use calmix::io::shown::shown;
use calmix::metric_table::{self, CalibratorState};
use calmix::metrics::calibrator::any_calibrator::Calibrator;
use calmix::metrics::evaluate::evaluate;
use calmix::metrics::measure::VoteMetrics;
use calmix::metrics::metrics::Resampling;
use calmix::metrics::predictions::Predictions;
use calmix::model_folder::with_model;
use calmix::predict::input_kind::InputKind;
use calmix::recipe::device::Device;
use calmix::run::read;
use calmix::stop::Stop;
use calmix::terminal::{print, print_json, warn};
use serde_json::{Value, json};

use super::votes::Votes;
use crate::labelled_folder;
use crate::model::Model;
use crate::model::{LabelledPredictions, ModelOptions};

/// How the guarantees hold up on labelled images; `None` without held-out labels.
struct MeasuredGuarantees {
    /// The share of the prediction sets that contain the true class, and their mean size.
    sets: Option<(f64, f64)>,
    /// The share of the images that are answered, and the share of the answers that are right.
    answers: Option<(f64, Option<f64>)>,
}

/// Evaluates on the folder, if one is named.
pub(crate) fn run(args: &OnArgs, run: &Path, device: Option<Device>, is_json: bool) -> Result<Option<Exit>> {
    let Some(folder) = args.on.as_deref() else { return Ok(None) };
    let folder = existing_folder(folder)?;
    let options = ModelOptions { device, ..ModelOptions::default() };
    let model = Model::load_with(with_model(run, "evaluate", &[])?, &options)?;
    let (stop, scratch) = (Stop::listen()?, tempfile::tempdir()?);
    let dataset = labelled_folder::open(&model, folder, scratch.path(), &stop)?;
    let subset = args.subset.as_deref();
    let votes = args.votes.as_deref();
    let votes = votes.map(|file| Votes::read(file, &dataset, subset, model.classes())).transpose()?;
    let origin = model.info().calibration.as_ref().and_then(|map| map.origin.as_ref());
    if origin.is_some_and(|origin| origin.dataset == dataset.fingerprint()) {
        warn("the model was calibrated on these images, so the calibrated metrics are optimistic");
    }
    let Some(found) = labelled_folder::predict(&model, folder, dataset, subset, &stop)? else {
        return Ok(Some(stop.exit()));
    };
    show(args, run, folder, &model, &found, votes.as_ref(), is_json)?;
    Ok(Some(Exit::Done))
}

fn show(
    args: &OnArgs,
    run: &Path,
    folder: &Path,
    model: &Model,
    found: &LabelledPredictions,
    votes: Option<&Votes>,
    is_json: bool,
) -> Result<()> {
    let LabelledPredictions { predictions, skipped, .. } = found;
    let calibration = model.info().calibration.as_ref();
    let mut evaluation = evaluate(predictions, calibration, Some((Resampling::default(), Seed(0))))?;
    evaluation.skipped = *skipped;
    let kept = measured_guarantees(model, predictions)?;
    let map = calibration.map_or(&Calibrator::IDENTITY, |fitted| &fitted.calibrator);
    let votes = votes.map(|votes| votes.compare(predictions, map)).transpose()?;
    if is_json {
        let raw = |(raw, calibrated): &(VoteMetrics, VoteMetrics)| {
            json!({
                "samples": raw.samples, "entropy": raw.entropy, "cross_entropy": raw.cross_entropy,
                "calibrated_cross_entropy": calibrated.cross_entropy, "correlation": calibrated.correlation,
            })
        };
        return print_json(&json!({
            "run": run.display().to_string(),
            "on": folder.display().to_string(),
            "subset": args.subset,
            "calibration": calibration,
            "evaluation": evaluation,
            "sets": kept.sets.map(|(coverage, size)| json!({"coverage": coverage, "size": size})),
            "answers": kept.answers.map(|(share, right)| json!({"share": share, "precision": right})),
            "votes": votes.as_ref().map_or(Value::Null, raw),
        }));
    }
    let why = read::result(run)?.and_then(|result| result.uncalibrated);
    let state = CalibratorState::Ended(why.as_ref());
    let table = metric_table::table(&[&evaluation], state, InputKind::Image).unwrap_or_default();
    let on = shown(folder.display());
    print(&format!("on {on}\n\n{table}{}{}", kept.text(), votes.map(votes_text).unwrap_or_default()))
}

impl MeasuredGuarantees {
    fn text(&self) -> String {
        let sets = self.sets.map(|(coverage, size)| {
            format!(
                "90% prediction sets: {} contain the true class, {size:.2} classes on average\n",
                percent(coverage, None)
            )
        });
        let answers = self.answers.map(|(share, right)| match right {
            Some(right) => format!(
                "90% precision: {} of the images are answered, and {} of the answers are right\n",
                percent(share, None),
                percent(right, None)
            ),
            None => "90% precision: no image is answered\n".to_owned(),
        });
        format!("{}{}", sets.unwrap_or_default(), answers.unwrap_or_default())
    }
}

fn measured_guarantees(model: &Model, said: &Predictions) -> Result<MeasuredGuarantees> {
    let n = said.labels.len().max(1) as f64;
    let (mut held, mut size, mut answered, mut right) = (0.0, 0.0, 0.0, 0.0);
    for (logits, &label) in said.matrix()?.iter().zip(&said.labels) {
        let prediction = model.prediction(logits)?;
        let set = prediction.set.unwrap_or_default();
        held += f64::from(u8::from(set.contains(&label)));
        size += set.len() as f64;
        if prediction.abstain == Some(false) {
            answered += 1.0;
            right += f64::from(u8::from(prediction.label == label as usize));
        }
    }
    let guaranteed = model.guarantee().sets().is_some();
    Ok(MeasuredGuarantees {
        sets: guaranteed.then_some((held / n, size / n)),
        answers: guaranteed.then_some((answered / n, (answered > 0.0).then(|| right / answered))),
    })
}

/// The rank correlation below which the agreement counts as weak.
const WEAK: f64 = 0.2;

fn votes_text((raw, scaled): (VoteMetrics, VoteMetrics)) -> String {
    let doubts = match scaled.correlation {
        Some(correlation) if (0.0..WEAK).contains(&correlation) => {
            format!("it is hardly less confident where voters disagree (rank correlation {correlation:.2})")
        }
        Some(correlation) if correlation >= WEAK => {
            format!("it is less confident where voters disagree (rank correlation {correlation:.2})")
        }
        Some(correlation) => {
            format!("it is not less confident where voters disagree (rank correlation {correlation:.2})")
        }
        None => "its confidence, or the agreement of the voters, is the same on every image".to_owned(),
    };
    format!(
        "against human votes on {}: cross-entropy {} uncalibrated, {} calibrated; entropy of the votes {};\n{doubts}\n",
        counted(raw.samples as u64, "image"),
        decimal(raw.cross_entropy, None),
        decimal(scaled.cross_entropy, None),
        decimal(raw.entropy, None)
    )
}
