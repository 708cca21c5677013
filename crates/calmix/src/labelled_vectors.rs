//! Labelled vectors that do not belong to a run, and the predictions of its model on them.

use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_head::parallel;
use calmix_recipe::{Data, SourceName};
use calmix_vectors::read_vectors::VectorShape;

use crate::command::data_args::{absolute, existing_dataset};
use crate::command::vector_args::VectorArgs;
use crate::labelled_samples::{self, LabelledPredictions, class_numbers, labelled_ids, unknown_class};
use crate::predict::input_kind::InputKind;
use crate::predict::vector_batches::BLOCK_ROWS;
use crate::stop::Stop;
use crate::vector_model::VectorModel;

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
    args: &VectorArgs,
    scratch: &Path,
    stop: &Stop,
) -> Result<Dataset> {
    let mut data = Data { source: SourceName::Vectors, ..Data::default() };
    if let Some(labels) = &args.labels {
        data.labels = absolute(existing_dataset(labels)?)?;
    }
    data.vector_column = args.vector_column.clone().unwrap_or_default();
    let dataset = labelled_samples::open(&data, path, scratch, stop)?;
    model.check_width(run, path, VectorShape::of(&dataset)?.width)?;
    Ok(dataset)
}

/// Predicts the labelled vectors, or those of one subset; `None` if the user stops it.
///
/// # Errors
/// If a class is not one of the model, or a vector has changed since it was read.
pub(crate) fn predict(
    model: &VectorModel,
    path: &Path,
    dataset: &Dataset,
    subset: Option<&str>,
    stop: &Stop,
) -> Result<Option<LabelledPredictions>> {
    let classes = &model.rule().info().classes;
    let numbers = class_numbers(dataset.classes(), classes);
    let numbers = numbers.map_err(|class| unknown_class(path, class, classes))?;
    let ids = labelled_ids(dataset, subset)?;
    let mut found = LabelledPredictions::empty(classes);
    let predictions = &mut found.predictions;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
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
        for logits in parallel::run(shares.len(), threads, |n| model.logits(shares[n])) {
            predictions.logits.extend(logits?);
        }
        predictions.ids.extend_from_slice(block);
    }
    found.check(path, InputKind::Vector)?;
    Ok(Some(found))
}
