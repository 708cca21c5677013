//! Predictions of a model on labelled images, of any dataset: logits with labels.

use std::sync::Arc;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::{EvalLoader, ImageSource, ImageViews, OnCorrupt, SampleStream, Workers};
use calmix_formats::image::Image;

use super::{Model, ModelError};
use crate::labelled::{LabelledPredictions, class_numbers, labelled_ids};

/// A dataset whose large images are shrunk as in the model's training.
struct LargeShrunk {
    dataset: Dataset,
    side: u32,
}

impl ImageSource for LargeShrunk {
    fn image(&self, id: u64) -> Result<Image, DataError> {
        self.dataset.shrunk_image(id, self.side)
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        self.dataset.label(id)
    }
}

impl Model {
    /// Predicts the labelled samples of a dataset, or of one of its subsets. Classes are matched by name, whatever their order.
    /// `stop` is polled ten times per second.
    ///
    /// # Errors
    /// If the dataset has a class that the model does not have, or cannot be read.
    pub fn predict_labelled(
        &self,
        dataset: Dataset,
        subset: Option<&str>,
        workers: Workers,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<LabelledPredictions, ModelError> {
        let labelled = labelled_ids(&dataset, subset)?;
        self.predict_samples(dataset, &labelled, workers, stop)
    }

    /// Predicts labelled samples of a dataset, as [`predict_labelled`](Self::predict_labelled) does.
    ///
    /// # Errors
    /// If the dataset has a class that the model does not have, or cannot be read.
    pub fn predict_samples(
        &self,
        dataset: Dataset,
        ids: &[u64],
        workers: Workers,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<LabelledPredictions, ModelError> {
        let known = self.classes();
        let numbers = class_numbers(dataset.classes(), known)
            .map_err(|class| ModelError::UnknownClass { class: class.to_owned(), known: known.to_vec() })?;
        let source = Arc::new(LargeShrunk { dataset, side: self.shrink() });
        let batch = u32::try_from(self.batch()).unwrap_or(u32::MAX);
        let stream = SampleStream { ids: ids.into(), batch };
        let corrupt = OnCorrupt::Skip { share: 1.0 };
        let transform = Arc::clone(self.transform());
        let mut loader = EvalLoader::new(
            ImageViews::new(Arc::<LargeShrunk>::clone(&source), transform),
            stream,
            corrupt,
            workers,
        )?;
        let mut found = LabelledPredictions::empty(known);
        while let Some(batch) = loader.next_unless(stop) {
            let batch = batch?;
            if let Some(first) = batch.skipped.first().filter(|_| found.skipped == 0) {
                found.first_skipped.clone_from(&first.problem);
            }
            found.skipped += batch.skipped.len() as u64;
            let predictions = &mut found.predictions;
            for views in batch.pixels.chunks(self.pass_bytes()) {
                // Poll `stop` here too: a batch can take a minute, and a loader that is ahead of the network does not poll it.
                if stop() {
                    return Err(DataError::Interrupted.into());
                }
                predictions.logits.extend(self.logits(views)?);
            }
            predictions.ids.extend_from_slice(&batch.ids);
            let labels = batch.labels.iter().flatten();
            predictions.labels.extend(labels.filter_map(|&label| numbers.get(label as usize).copied()));
        }
        found.predictions.groups = source.dataset.group_numbers(&found.predictions.ids)?;
        Ok(found)
    }
}
