//! Labelled vectors that do not belong to a run, and the predictions of its model on them.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_head::parallel;
use calmix_lifecycle::vector_shape::VectorShape;

use crate::args::options::labelled::LabelledArgs;
use crate::labelled::samples::{self, LabelledPredictions, class_numbers, unknown_class};
use crate::model::vector_model::VectorModel;
use crate::predict::input_kind::InputKind;
use crate::predict::vector_batches::BLOCK_ROWS;
use crate::process::stop::Stop;

/// Vectors that one thread predicts at a time.
const SHARE_ROWS: usize = 256;

/// Reads vectors with their labels, as for training, into a table in `scratch`.
///
/// # Errors
/// If they cannot be read, or are not of the length that the model of `run` reads.
pub(crate) fn open(
    run: &Path,
    model: &VectorModel,
    path: &Path,
    args: &LabelledArgs,
    scratch: &Path,
    stop: &Stop,
) -> Result<Dataset> {
    let dataset = samples::open(&args.vectors()?, path, scratch, stop)?;
    model.check_width(run, path, VectorShape::of(&dataset)?.width)?;
    Ok(dataset)
}

/// Predicts labelled vectors; `None` if the user stops it.
///
/// # Errors
/// If a class is not one of the model, or a vector has changed since it was read.
pub(crate) fn predict(
    model: &VectorModel,
    path: &Path,
    dataset: &Dataset,
    ids: &[u64],
    threads: NonZeroUsize,
    stop: &Stop,
) -> Result<Option<LabelledPredictions>> {
    let classes = &model.rule().info().classes;
    let numbers = class_numbers(dataset.classes(), classes);
    let numbers = numbers.map_err(|class| unknown_class(path, class, classes))?;
    let mut found = LabelledPredictions::empty(classes);
    let predictions = &mut found.predictions;
    for block in ids.chunks(BLOCK_ROWS) {
        if stop.flag().load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut vectors = Vec::with_capacity(block.len() * model.width());
        for &id in block {
            let start = vectors.len();
            dataset.vector(id, &mut vectors)?;
            // Of several views, the first is the sample as it is.
            vectors.truncate(start + model.width());
            let label = dataset.label(id)?.and_then(|label| numbers.get(label as usize).copied());
            predictions.labels.extend(label);
        }
        let shares: Vec<&[f32]> = vectors.chunks(SHARE_ROWS * model.width()).collect();
        for logits in parallel::run(shares.len(), threads.get(), |n| model.logits(shares[n])) {
            predictions.logits.extend(logits?);
        }
        predictions.ids.extend_from_slice(block);
    }
    predictions.groups = dataset.group_numbers(&predictions.ids)?;
    found.check(path, InputKind::Vector)?;
    Ok(Some(found))
}
