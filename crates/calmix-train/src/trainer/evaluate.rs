//! Evaluates a network: its predictions on validation and test, and the figures made of them.

use calmix_core::rng::Seed;
use calmix_dist::ProcessGroup;
use calmix_engine::engine::{Engine, Weights};

use super::error::TrainError;
use super::train_data::TrainData;
use super::wire::{Decoder, Encoder};
use crate::recipe::Recipe;
use calmix_run::evaluate::{ENOUGH, Predictions, Resampling, Scaling, evaluate};
use calmix_run::events::{EvalModel, EvalSet, Evaluation};

/// What an evaluation found.
#[derive(Debug, Clone, Default)]
pub struct EvalOutput {
    /// The predictions.
    pub predictions: Vec<Predictions>,
    /// Their figures, on validation and test.
    pub evaluations: Vec<Evaluation>,
    /// The temperature that makes its confidence true; only at the end, and where there are labels to fit it on.
    pub scaling: Option<Scaling>,
}

/// How thorough an evaluation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EvalMode {
    /// The figures.
    Quick,
    /// The figures with their intervals, and a temperature.
    Final,
}

/// Evaluates a model on validation and test. Processes share the predictions; rank 0 makes the figures.
pub(super) fn evaluate_model(
    engine: &Engine,
    processes: &ProcessGroup,
    recipe: &Recipe,
    data: &TrainData,
    (step, model): (u64, EvalModel),
    mode: EvalMode,
) -> Result<EvalOutput, TrainError> {
    let predict = |split| predict(engine, processes, recipe, data, split, (step, model));
    let mut predictions = Vec::new();
    for split in [EvalSet::Validation, EvalSet::Test] {
        predictions.extend(predict(split)?);
    }
    let seed = Seed(recipe.train.seed);
    let mut output = EvalOutput::default();
    if mode == EvalMode::Final {
        let held_out = predictions.iter().find(|seen| seen.split == EvalSet::Validation);
        let enough = held_out.is_some_and(|seen| seen.labels.len() >= ENOUGH);
        let labelled = if enough { None } else { predict(EvalSet::Labelled)? };
        if processes.rank() > 0 {
            return Ok(output);
        }
        output.scaling = Scaling::fit(held_out, labelled.as_ref(), seed)?;
        predictions.extend(labelled);
    }
    if processes.rank() > 0 {
        return Ok(output);
    }
    let how = Resampling { replicates: recipe.evaluate.bootstrap as usize, ..Resampling::default() };
    let resampling = (mode == EvalMode::Final && how.replicates > 0).then_some((how, seed));
    for seen in predictions.iter().filter(|seen| seen.split != EvalSet::Labelled) {
        output.evaluations.push(evaluate(seen, output.scaling.as_ref(), resampling)?);
    }
    output.predictions = predictions;
    Ok(output)
}

/// The predictions of a model on the labelled samples of a split; none where there are none.
fn predict(
    engine: &Engine,
    processes: &ProcessGroup,
    recipe: &Recipe,
    data: &TrainData,
    split: EvalSet,
    (step, model): (u64, EvalModel),
) -> Result<Option<Predictions>, TrainError> {
    let Some(batches) = data.samples_of(recipe, split, processes)? else { return Ok(None) };
    let which = match model {
        EvalModel::Ema => Weights::Ema,
        EvalModel::Live => Weights::Live,
    };
    let classes = data.classes.clone();
    let width = classes.len();
    let (mut ids, mut labels, mut logits) = (Vec::new(), Vec::new(), Vec::new());
    for batch in batches {
        let batch = batch?;
        if batch.ids.is_empty() {
            continue;
        }
        let seen = engine.predict(&batch.pixels, which)?;
        for ((&id, &label), row) in
            batch.ids.iter().zip(&batch.labels).zip(seen.logits.chunks_exact(width.max(1)))
        {
            if let Some(label) = label {
                ids.push(id);
                labels.push(label);
                logits.extend_from_slice(row);
            }
        }
    }
    if processes.size() > 1 {
        let mut message = Encoder::default();
        message.add(&ids);
        message.add(&labels);
        message.add(&logits);
        (ids, labels, logits) = Default::default();
        // The first process alone makes the figures.
        for message in processes.gather_bytes(0, message.bytes())? {
            let mut message = Decoder::new(&message);
            message.read(&mut ids)?;
            message.read(&mut labels)?;
            message.read(&mut logits)?;
        }
    }
    Ok((!ids.is_empty()).then_some(Predictions { step, split, model, classes, ids, labels, logits }))
}
