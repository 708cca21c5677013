//! The evaluation of a network: predictions on validation and test, and their metrics.

pub(super) mod reevaluate;

use std::cell::RefCell;
use std::sync::Arc;

use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use calmix_data::error::DataError;
use calmix_data::loader::{EvalBatch, PooledBatch};
use calmix_engine::engine::{Engine, Weights};
use calmix_lifecycle::evaluation::{EvalOutput, FinalEvaluation, LeftOut, WorkCount, resampling};
use calmix_metrics::calibrator::CalibratorKind;
use calmix_metrics::error::MetricsError;
use calmix_metrics::evaluate::select;
use calmix_metrics::fitted_calibrator::Fitted;
use calmix_metrics::measure::{Binning, TopLabel, reliability_bins};
use calmix_metrics::metrics::Resampling;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_metrics::pseudo_labels::PseudoLabelMetrics;
use calmix_recipe::{Recipe, Selection};
use calmix_run::sink::{Work, WorkProgress};

use crate::trainer::data::{EvalBatches, EvalRounds, TrainData};
use crate::trainer::error::TrainError;
use crate::trainer::lifecycle::checkpoint_files::Best;
use crate::trainer::lifecycle::run_log::RunLog;
use crate::trainer::ranks::collect_results::broadcast_result;
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::ranks::wire::{Decoder, Encoder};
use crate::trainer::step::stepper::Stepper;

/// The results that an evaluation computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum EvalMode<'a> {
    /// Only metrics, during training.
    MetricsOnly,
    /// Metrics with intervals, and a new calibrator, for the resulting model.
    Final,
    /// Metrics with intervals, with a given calibrator.
    With(&'a Fitted),
}

/// The number of replicates between two checks of several processes whether to stop.
const REPLICATES_PER_CHECK: u32 = 16;

/// Evaluates a model on validation and test. Processes share the predictions; rank 0 computes the metrics.
///
/// # Errors
/// [`LifecycleError::Stopped`](calmix_lifecycle::LifecycleError::Stopped) if `stop` requests it, on all processes; nothing was
/// written then.
pub(crate) fn evaluate_model(
    engine: &Engine,
    recipe: &Recipe,
    data: &TrainData,
    (step, model): (u64, EvalModel),
    mode: EvalMode<'_>,
    stop: EvalStop<'_>,
) -> Result<EvalOutput, TrainError> {
    let processes = stop.processes;
    let mut left_out = Vec::new();
    let mut predict = |split| {
        let found = predict(engine, recipe, data, split, (step, model), stop)?;
        Ok::<_, TrainError>(found.map(|(seen, corrupt)| {
            left_out.push((split, corrupt));
            seen
        }))
    };
    let mut predictions = Vec::new();
    for split in [EvalSet::Validation, EvalSet::Test] {
        predictions.extend(predict(split)?);
    }
    let mut output = EvalOutput::default();
    let has_intervals = mode != EvalMode::MetricsOnly;
    if mode == EvalMode::Final {
        let held_out = predictions.iter().find(|seen| seen.split == EvalSet::Validation);
        let min_labels = CalibratorKind::Temperature.min_labels();
        // Only rank 0 has the predictions.
        let enough = held_out.is_some_and(|seen| seen.labels.len() >= min_labels);
        let enough =
            broadcast_result(processes, (processes.rank() == 0).then_some(Ok::<_, TrainError>(enough)))?;
        let labelled = if enough { None } else { predict(EvalSet::Labelled)? };
        if processes.rank() > 0 {
            resampling(recipe).map_or(Ok(()), |_| stop.wait_for_first())?;
            return Ok(output);
        }
        let held_out = held_out.map(|seen| (seen, data.samples.fitted_on()));
        // The other ranks wait for rank 0 and would not notice that it has left, so only a process alone may stop here.
        let is_alone = processes.size() == 1;
        let fitted = Fitted::of(held_out, labelled.as_ref(), &|| is_alone && stop.is_requested());
        output.fitted = match fitted {
            Err(MetricsError::Stopped) => return Err(TrainError::stopped()),
            fitted => Some(fitted?),
        };
        predictions.extend(labelled);
    }
    if let EvalMode::With(fitted) = mode {
        output.fitted = Some(fitted.clone());
    }
    if processes.rank() > 0 {
        return Ok(output);
    }
    output.predictions = predictions;
    let resampling = resampling(recipe).filter(|_| has_intervals);
    measure(output, &left_out, resampling, stop)
}

/// Evaluates the EMA weights, and the trained ones if the recipe requests it; returns the evaluation of the EMA weights.
///
/// # Errors
/// [`LifecycleError::Stopped`](calmix_lifecycle::LifecycleError::Stopped) if the run has to stop; nothing was written then, and
/// the state is unchanged.
pub(crate) fn evaluate_network(
    stepper: &Stepper,
    mode: EvalMode<'_>,
    stop: EvalStop<'_>,
    log: &mut RunLog<'_>,
) -> Result<FinalEvaluation, TrainError> {
    let recipe = &stepper.recipe;
    let engine = &stepper.state.engine;
    let step = stop.step;
    let models =
        if recipe.evaluate.online { &[EvalModel::Ema, EvalModel::Live][..] } else { &[EvalModel::Ema] };
    let shown = RefCell::new(&mut log.events);
    let work = |progress: &WorkProgress| shown.borrow_mut().work(progress);
    let stop = EvalStop { work: &work, ..stop };
    // Evaluate all models before writing anything: an abandoned evaluation must leave nothing behind.
    let outputs = models
        .iter()
        .map(|&model| Ok((model, evaluate_model(engine, recipe, &stepper.data, (step, model), mode, stop)?)));
    let outputs = outputs.collect::<Result<Vec<_>, TrainError>>()?;
    let mut evaluation = FinalEvaluation::default();
    for (model, output) in outputs {
        log.evaluation(step, &output)?;
        if model == EvalModel::Ema {
            evaluation = FinalEvaluation::of(&output)?;
        }
    }
    let window = recipe.evaluate.window as usize;
    let best = select(recipe.selection, window, &log.progress.history);
    let now_best = best.is_some_and(|best| best.at_step == Some(step));
    if keeps_best(recipe.selection) && now_best {
        log.progress.best = Some(Best { step, weights: engine.snapshot()?.ema });
    }
    Ok(evaluation)
}

/// Returns whether the result is the best model of the run, not the last.
pub(crate) fn keeps_best(rule: Selection) -> bool {
    matches!(rule, Selection::BestValidation | Selection::BestTest)
}

/// Adds the metrics of the predictions, on rank 0.
fn measure(
    output: EvalOutput,
    left_out: &[(EvalSet, LeftOut)],
    resampling: Option<(Resampling, Seed)>,
    stop: EvalStop<'_>,
) -> Result<EvalOutput, TrainError> {
    let mut replicates = 0_u32;
    let mut stop_error = None;
    let mut count =
        resampling.map(|(how, _)| WorkCount::begin(stop.work, Work::Intervals, output.resamples(how)));
    let mut is_over = || {
        replicates = replicates.wrapping_add(1);
        if let Some(count) = &mut count {
            count.add(1);
        }
        if stop.processes.size() == 1 || replicates.is_multiple_of(REPLICATES_PER_CHECK) {
            stop_error = stop.check().err();
        }
        stop_error.is_some()
    };
    let measured = output.measure(left_out, resampling, &mut is_over)?;
    let output = measured.ok_or_else(|| stop_error.unwrap_or_else(TrainError::stopped))?;
    resampling.map_or(Ok(()), |_| stop.done())?;
    Ok(output)
}

/// Evaluates the pseudo-labels of all unlabelled samples whose class is known, by the trained weights, which also make those of
/// training. Rank 0 gets the metrics.
pub(crate) fn evaluate_pseudo_labels(
    engine: &Engine,
    recipe: &Recipe,
    data: &TrainData,
    stop: EvalStop<'_>,
) -> Result<Option<PseudoLabelMetrics>, TrainError> {
    let processes = stop.processes;
    let Some(samples) = data.evaluated_samples(recipe, processes)? else { return Ok(None) };
    let mut count = WorkCount::begin(stop.work, Work::PseudoLabels, samples.samples);
    let per_round = samples.samples_per_round();
    let EvalRounds { batches, rounds, .. } = samples;
    let mut batches = batches.warning(Arc::clone(stop.warn));
    let (mut confidence, mut correct) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let Some(batch) = next_batch(&mut batches, stop)? else { continue };
        count.add(per_round);
        let labels: Option<Vec<u32>> = batch.labels.iter().copied().collect();
        let Some(labels) = labels.filter(|labels| !labels.is_empty()) else { continue };
        let logits = engine.predict(&batch.pixels, Weights::Trained)?.logits;
        let logits = Matrix::new(&logits, labels.len(), data.samples.classes.len())
            .map_err(|_| TrainError::unsupported("the predictions do not have one row per image"))?;
        let predicted = TopLabel::from_logits(logits, &labels, 1.0)?;
        confidence.extend_from_slice(predicted.confidence());
        correct.extend(predicted.correct().iter().map(|&correct| u8::from(correct)));
    }
    // If the loop ended because this process has to stop, the check fails on all processes.
    stop.check()?;
    if processes.size() > 1 {
        let mut message = Encoder::default();
        message.add(&confidence);
        message.add(&correct);
        (confidence, correct) = Default::default();
        for message in processes.gather_bytes(0, message.bytes())? {
            let mut message = Decoder::new(&message);
            message.read(&mut confidence)?;
            message.read(&mut correct)?;
        }
    }
    let predicted = TopLabel::new(confidence, correct.iter().map(|&correct| correct == 1).collect())?;
    Ok(PseudoLabelMetrics::of(&reliability_bins(&predicted, Binning::default())))
}

/// Returns the next batch of an evaluation; `None` if this process has no further one or has to stop, which the others notice at
/// the next check.
fn next_batch(
    batches: &mut EvalBatches,
    stop: EvalStop<'_>,
) -> Result<Option<PooledBatch<EvalBatch>>, TrainError> {
    stop.check()?;
    match batches.next_unless(&mut || stop.is_requested()).transpose() {
        Err(DataError::Interrupted) => Ok(None),
        batch => Ok(batch?),
    }
}

/// Labelled samples with the predictions of a model.
#[derive(Debug, Default)]
struct PredictedRows {
    ids: Vec<u64>,
    labels: Vec<u32>,
    logits: Vec<f32>,
}

/// Predicts the labelled samples of a split with a model of `width` classes; also returns the samples that were left out.
fn predict_batches(
    engine: &Engine,
    which: Weights,
    split: EvalSet,
    samples: EvalRounds,
    width: usize,
    stop: EvalStop<'_>,
) -> Result<(PredictedRows, LeftOut), TrainError> {
    let mut count = WorkCount::begin(stop.work, Work::Evaluation(split), samples.samples);
    let per_round = samples.samples_per_round();
    let EvalRounds { batches, rounds, .. } = samples;
    let mut batches = batches.warning(Arc::clone(stop.warn));
    let mut rows = PredictedRows::default();
    let mut left_out = LeftOut::default();
    for _ in 0..rounds {
        let Some(batch) = next_batch(&mut batches, stop)? else { continue };
        count.add(per_round);
        left_out.samples += batch.skipped.len() as u64;
        if let Some(skipped) = batch.skipped.first().filter(|_| left_out.first.is_empty()) {
            left_out.first.clone_from(&skipped.problem);
        }
        if batch.ids.is_empty() {
            continue;
        }
        let seen = engine.predict(&batch.pixels, which)?;
        for ((&id, &label), row) in
            batch.ids.iter().zip(&batch.labels).zip(seen.logits.chunks_exact(width.max(1)))
        {
            if let Some(label) = label {
                rows.ids.push(id);
                rows.labels.push(label);
                rows.logits.extend_from_slice(row);
            }
        }
    }
    // If the loop ended because this process has to stop, the check fails on all processes.
    stop.check()?;
    Ok((rows, left_out))
}

/// Predicts the labelled samples of a split; also returns the samples that were left out. `None` if there are none.
pub(crate) fn predict(
    engine: &Engine,
    recipe: &Recipe,
    data: &TrainData,
    split: EvalSet,
    (step, model): (u64, EvalModel),
    stop: EvalStop<'_>,
) -> Result<Option<(Predictions, LeftOut)>, TrainError> {
    let processes = stop.processes;
    let Some(samples) = data.samples_of(recipe, split, processes)? else { return Ok(None) };
    let which = match model {
        EvalModel::Ema => Weights::Ema,
        EvalModel::Live => Weights::Trained,
    };
    let classes = data.samples.classes.clone();
    let (mut rows, mut left_out) = predict_batches(engine, which, split, samples, classes.len(), stop)?;
    if processes.size() > 1 {
        let mut message = Encoder::default();
        message.add(&rows.ids);
        message.add(&rows.labels);
        message.add(&rows.logits);
        message.add(&[left_out.samples]);
        message.add(left_out.first.as_bytes());
        (rows, left_out) = Default::default();
        // Gather on rank 0, which alone computes the metrics.
        for message in processes.gather_bytes(0, message.bytes())? {
            let mut message = Decoder::new(&message);
            message.read(&mut rows.ids)?;
            message.read(&mut rows.labels)?;
            message.read(&mut rows.logits)?;
            left_out.samples += message.list::<u64>()?.iter().sum::<u64>();
            let first = String::from_utf8_lossy(&message.list::<u8>()?).into_owned();
            if left_out.first.is_empty() {
                left_out.first = first;
            }
        }
    }
    let PredictedRows { ids, labels, logits } = rows;
    let groups = data.samples.dataset.group_numbers(&ids)?;
    let predictions = Predictions { step, split, model, classes, ids, labels, logits, groups };
    Ok((!predictions.ids.is_empty()).then_some((predictions, left_out)))
}
