//! The logits of many images: read ahead by worker threads, and predicted in batches in the order of the list.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use calmix_data::error::DataError;
use calmix_data::image_list::{ListedImage, ListedImages};
use calmix_data::loader::{EvalBatch, EvalLoader, ImageViews, OnCorrupt, SampleIds, SampleStream, Workers};
use calmix_io::shown::escaped_path;

use crate::model::{Model, ViewOutputs};
use crate::predict::input::{LogitBatch, NamedInput};
use crate::terminal::warn;

/// The number of batches per loader. The next loader starts before the last batch of this one is predicted.
const BATCHES_PER_LOADER: usize = 16;

/// The batches of a list of images. The iterator ends early if the command has to stop.
pub(crate) struct ImageBatches<'a, L> {
    model: &'a Model,
    list: L,
    workers: Workers,
    /// Whether to keep the features of the images.
    has_features: bool,
    stop: &'a AtomicBool,
    chunk: Option<Chunk>,
}

/// A part of the list, and the loader that reads it.
struct Chunk {
    source: Arc<ListedImages>,
    loader: EvalLoader,
    /// The number of images whose batches the loader has returned.
    done: usize,
}

impl<'a, L: Iterator<Item = Result<ListedImage>>> ImageBatches<'a, L> {
    /// Starts to read the images.
    pub(crate) fn new(
        model: &'a Model,
        list: L,
        workers: Workers,
        has_features: bool,
        stop: &'a AtomicBool,
    ) -> Result<Self> {
        let mut batches = Self { model, list, workers, has_features, stop, chunk: None };
        batches.chunk = batches.next_chunk()?;
        Ok(batches)
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        let images: Vec<_> =
            self.list.by_ref().take(BATCHES_PER_LOADER * self.model.batch()).collect::<Result<_>>()?;
        // Start no loader for a list that a signal cut short: it would take seconds to end.
        let is_over = images.is_empty() || self.stop.load(Ordering::Relaxed);
        (!is_over).then(|| start(self.model, images, self.workers)).transpose()
    }

    /// Returns the next batch; `None` after the last one, or if the command has to stop.
    fn next_batch(&mut self) -> Result<Option<LogitBatch>> {
        let Some(mut chunk) = self.chunk.take() else { return Ok(None) };
        let batch = match chunk.loader.next_unless(&mut || self.stop.load(Ordering::Relaxed)) {
            Some(Err(DataError::Interrupted)) => return Ok(None),
            Some(batch) => batch?,
            None => anyhow::bail!("the loader ended before its images did"),
        };
        let first = chunk.done;
        chunk.done += batch.ids.len() + batch.skipped.len();
        let is_last = chunk.done >= chunk.source.images.len();
        let next = if is_last { self.next_chunk()? } else { None };
        let Some(outputs) = outputs(self.model, &batch, self.stop)? else { return Ok(None) };
        let inputs = named_inputs(&chunk.source.images[first..chunk.done], first, &batch);
        self.chunk = if is_last { next } else { Some(chunk) };
        let observed = self.model.shift_check().observe(&outputs.features)?;
        let features = self.has_features.then_some(outputs.features);
        Ok(Some(LogitBatch { inputs, logits: outputs.logits, features, observed }))
    }
}

impl<L: Iterator<Item = Result<ListedImage>>> Iterator for ImageBatches<'_, L> {
    type Item = Result<LogitBatch>;

    fn next(&mut self) -> Option<Result<LogitBatch>> {
        self.next_batch().transpose()
    }
}

/// Predicts a batch in several passes, since it can take a minute; `None` if the command has to stop.
fn outputs(model: &Model, batch: &EvalBatch, stop: &AtomicBool) -> Result<Option<ViewOutputs>> {
    let mut all = ViewOutputs { logits: Vec::new(), features: Vec::new() };
    for views in batch.pixels.chunks(model.pass_bytes()) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let outputs = model.outputs(views)?;
        all.logits.extend(outputs.logits);
        all.features.extend(outputs.features);
    }
    Ok(Some(all))
}

fn start(model: &Model, images: Vec<ListedImage>, workers: Workers) -> Result<Chunk> {
    let stream = SampleStream {
        ids: SampleIds::from(0..images.len() as u64),
        batch: u32::try_from(model.batch()).unwrap_or(u32::MAX),
    };
    let source = Arc::new(ListedImages::new(images, u32::MAX, model.shrink()));
    // An image that cannot be read gets a row with its problem, however many there are.
    let corrupt = OnCorrupt::Skip { share: 1.0 };
    let transform = Arc::clone(model.transform());
    let loader = EvalLoader::new(
        ImageViews::new(Arc::<ListedImages>::clone(&source), transform),
        stream,
        corrupt,
        workers,
    )?;
    let loader = loader.warning(Arc::new(|text: &str| warn(text)));
    Ok(Chunk { source, loader, done: 0 })
}

/// Returns the images of a batch, in the order of the list; `first` is the position of its first image in the loader.
fn named_inputs(images: &[ListedImage], first: usize, batch: &EvalBatch) -> Vec<NamedInput> {
    let mut skipped = batch.skipped.iter().peekable();
    let mut inputs = Vec::with_capacity(images.len());
    for (id, image) in (first as u64..).zip(images) {
        let problem = skipped.next_if(|skipped| skipped.id == id).map(|bad| {
            let sample = format!("sample {id}: ");
            bad.problem.strip_prefix(&sample).unwrap_or(&bad.problem).to_owned()
        });
        inputs.push(NamedInput { name: escaped_path(&image.path), problem });
    }
    inputs
}
