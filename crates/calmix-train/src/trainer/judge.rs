//! What a network says about the samples of a split, and what that is worth.

use calmix_core::rng::Seed;
use calmix_dist::Processes;
use calmix_engine::engine::{Engine, Weights};

use super::error::TrainError;
use super::material::Material;
use super::wire::{Decoder, Encoder};
use crate::evaluate::{ENOUGH, Predictions, Resampling, Scaling, evaluate};
use crate::events::{Evaluation, Model, Split};
use crate::recipe::Recipe;

/// What was found out about a model.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// What it said.
    pub predictions: Vec<Predictions>,
    /// What that is worth, on validation and test.
    pub evaluations: Vec<Evaluation>,
    /// The temperature that makes its confidence true; only at the end, and where there are labels to fit it on.
    pub scaling: Option<Scaling>,
}

/// How thorough a judgement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// The figures.
    Passing,
    /// The figures with their intervals, and a temperature.
    Final,
}

/// Shows validation and test to a model. Processes share the looking; the first of them makes up the verdict.
pub(super) fn judge(
    engine: &Engine,
    processes: &Processes,
    recipe: &Recipe,
    material: &Material,
    (step, model): (u64, Model),
    care: Care,
) -> Result<Verdict, TrainError> {
    let look = |split| look(engine, processes, recipe, material, split, (step, model));
    let mut predictions = Vec::new();
    for split in [Split::Validation, Split::Test] {
        predictions.extend(look(split)?);
    }
    let seed = Seed(recipe.train.seed);
    let mut verdict = Verdict::default();
    if care == Care::Final {
        let held_out = predictions.iter().find(|seen| seen.split == Split::Validation);
        let enough = held_out.is_some_and(|seen| seen.labels.len() >= ENOUGH);
        let labelled = if enough { None } else { look(Split::Labelled)? };
        if processes.rank() > 0 {
            return Ok(verdict);
        }
        verdict.scaling = Scaling::fit(held_out, labelled.as_ref(), seed)?;
        predictions.extend(labelled);
    }
    if processes.rank() > 0 {
        return Ok(verdict);
    }
    let how = Resampling { replicates: recipe.evaluate.bootstrap as usize, ..Resampling::default() };
    let resampling = (care == Care::Final && how.replicates > 0).then_some((how, seed));
    for seen in predictions.iter().filter(|seen| seen.split != Split::Labelled) {
        verdict.evaluations.push(evaluate(seen, verdict.scaling.as_ref(), resampling)?);
    }
    verdict.predictions = predictions;
    Ok(verdict)
}

/// What a model says about the labelled samples of a split; none where there are none.
fn look(
    engine: &Engine,
    processes: &Processes,
    recipe: &Recipe,
    material: &Material,
    split: Split,
    (step, model): (u64, Model),
) -> Result<Option<Predictions>, TrainError> {
    let Some(batches) = material.samples_of(recipe, split, processes)? else { return Ok(None) };
    let which = match model {
        Model::Ema => Weights::Ema,
        Model::Live => Weights::Live,
    };
    let classes = material.classes.clone();
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
        for message in processes.gather_bytes_to(0, message.bytes())? {
            let mut message = Decoder::new(&message);
            message.read(&mut ids)?;
            message.read(&mut labels)?;
            message.read(&mut logits)?;
        }
    }
    Ok((!ids.is_empty()).then_some(Predictions { step, split, model, classes, ids, labels, logits }))
}
