//! Predictions of many images: read ahead by worker threads, predicted in batches, written in the order of the list.

mod foreign_file;
pub(crate) mod list_reader;
pub(crate) mod output;
mod parquet;
mod part_folder;
pub(crate) mod row;
mod row_file;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use calmix::data::augment::Augment;
use calmix::data::error::DataError;
use calmix::data::image_list::{ListedImage, ListedImages};
use calmix::data::loader::SampleIds;
use calmix::data::loader::{EvalBatch, EvalLoader, ImageViews, OnCorrupt, SampleStream, Workers};
use calmix::rate::Rate;
use calmix::terminal::warn_at_once;

use crate::model::Model;
use crate::model::Prediction;
use output::RowOutput;
use row::{PredictedImage, escaped};

/// The batches of one loader. The next loader starts before the last batch of this one is predicted.
const BATCHES: usize = 16;

/// The counts of predicted images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PredictTally {
    /// Rows that were written.
    pub(crate) rows: u64,
    /// Rows of images that could not be read.
    pub(crate) unread: u64,
    /// Rows of images that the model abstains from.
    pub(crate) abstained: u64,
}

/// Some images of the list, and the loader that reads them.
struct Chunk {
    source: Arc<ListedImages>,
    loader: EvalLoader<ImageViews<Augment>>,
}

/// Predicts images and writes one row each, until `stop`: the rows of all earlier batches are then written.
pub(crate) fn predict_list(
    model: &Model,
    mut list: impl Iterator<Item = Result<ListedImage>>,
    workers: Workers,
    output: &mut RowOutput<'_>,
    rate: &mut Rate,
    stop: &AtomicBool,
) -> Result<PredictTally> {
    let mut tally = PredictTally::default();
    let mut next = || {
        let images: Vec<_> = list.by_ref().take(BATCHES * model.batch()).collect::<Result<_>>()?;
        // No loader for a list that a signal cut short: a loader takes seconds to end.
        let is_over = images.is_empty() || stop.load(Ordering::Relaxed);
        (!is_over).then(|| start(model, images, workers)).transpose()
    };
    let mut current = next()?;
    while let Some(mut chunk) = current.take() {
        let (mut first, all) = (0, chunk.source.images.len());
        while first < all {
            let is_stopped = &mut || stop.load(Ordering::Relaxed);
            let batch = match chunk.loader.next_unless(is_stopped) {
                Some(Err(DataError::Interrupted)) => return Ok(tally),
                Some(batch) => batch?,
                None => anyhow::bail!("the loader ended before its images did"),
            };
            let rows = batch.ids.len() + batch.skipped.len();
            if first + rows >= all {
                current = next()?;
            }
            let Some(predictions) = predicted(model, &batch, stop)? else { return Ok(tally) };
            let images = &chunk.source.images[first..first + rows];
            output.write(&rows_of(images, (first, &batch), &predictions, &mut tally))?;
            first += rows;
            rate.add(rows as u64);
        }
    }
    Ok(tally)
}

/// Predicts a batch, pass by pass, since a batch can take a minute; `None` if the command has to stop.
fn predicted(model: &Model, batch: &EvalBatch, stop: &AtomicBool) -> Result<Option<Vec<Prediction>>> {
    let mut predictions = Vec::with_capacity(batch.ids.len());
    for views in batch.pixels.chunks(model.pass_bytes()) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        predictions.extend(model.predict_views(views)?);
    }
    Ok(Some(predictions))
}

fn start(model: &Model, images: Vec<ListedImage>, workers: Workers) -> Result<Chunk> {
    let stream = SampleStream {
        ids: SampleIds::from(0..images.len() as u64),
        batch: u32::try_from(model.batch()).unwrap_or(u32::MAX),
    };
    let source = Arc::new(ListedImages::new(images, u32::MAX, model.shrink()));
    // Every image that cannot be read has a row, however many there are.
    let corrupt = OnCorrupt::Skip { share: 1.0 };
    let transform = Arc::clone(model.transform());
    let loader = EvalLoader::new(
        ImageViews::new(Arc::<ListedImages>::clone(&source), transform),
        stream,
        corrupt,
        workers,
    )?;
    Ok(Chunk { source, loader: loader.warning(Arc::new(|text: &str| warn_at_once(text))) })
}

/// The rows of a batch, in the order of the list. The images that could be read have their predictions in the same order.
fn rows_of<'a>(
    images: &[ListedImage],
    (first, batch): (usize, &EvalBatch),
    predictions: &'a [Prediction],
    tally: &mut PredictTally,
) -> Vec<PredictedImage<'a>> {
    let mut predictions = predictions.iter();
    let mut skipped = batch.skipped.iter().peekable();
    let mut row = |(n, image): (usize, &ListedImage)| {
        let bad = skipped.next_if(|skipped| skipped.id == (first + n) as u64);
        let said = if bad.is_some() { None } else { predictions.next() };
        tally.rows += 1;
        tally.unread += u64::from(bad.is_some());
        tally.abstained += u64::from(said.and_then(|said| said.abstain) == Some(true));
        let error = bad.map(|bad| {
            let sample = format!("sample {}: ", bad.id);
            bad.problem.strip_prefix(&sample).unwrap_or(&bad.problem).to_owned()
        });
        PredictedImage { path: escaped(image.path.as_encoded_bytes()), said, error }
    };
    images.iter().enumerate().map(&mut row).collect()
}
