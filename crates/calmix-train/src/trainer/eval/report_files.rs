//! The files that a run writes for its report: the margins of its samples, and thumbnails of example predictions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use calmix_data::augment::{Augment, EvalView};
use calmix_data::error::DataError;
use calmix_data::loader::{EvalLoader, ImageViews, SampleStream, Warn};
use calmix_metrics::margin_histogram::SampleMargins;
use calmix_recipe::Recipe;
use calmix_run::examples::{SIDES, Thumbnails};

use crate::trainer::data::train_data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::collect_results::unreadable;
use crate::trainer::ranks::eval_stop::EvalStop;
use crate::trainer::step::stepper::Stepper;

/// The margins of all samples on rank 0; on the other ranks, those of their own samples.
pub(crate) fn sample_margins(stepper: &Stepper) -> Result<SampleMargins, TrainError> {
    let mut margins = SampleMargins::default();
    if let Some(store) = &stepper.state.labelled.margins {
        margins.add_labelled(store);
    }
    for store in stepper.state.samples.shards.iter().filter_map(|shard| shard.margins.as_ref()) {
        margins.add_unlabelled(store);
    }
    let processes = &stepper.layout.processes;
    if processes.size() > 1 {
        let own = serde_json::to_vec(&margins).map_err(unreadable)?;
        for other in processes.gather_bytes(0, own)?.iter().skip(1) {
            margins.merge_unlabelled(&serde_json::from_slice(other).map_err(unreadable)?);
        }
    }
    Ok(margins)
}

/// Thumbnails of samples as evaluation sees them; rank 0 makes them while the others wait.
///
/// # Errors
/// [`TrainError::Abandoned`] if `stop` requests it, on all processes alike.
pub(crate) fn thumbnails(
    ids: &[u64],
    recipe: &Recipe,
    data: &TrainData,
    stop: EvalStop<'_>,
) -> Result<Thumbnails, TrainError> {
    if stop.processes.rank() > 0 {
        stop.wait_for_first()?;
        return Ok(Thumbnails::default());
    }
    let thumbnails = match data.thumbnails(ids, recipe, stop.warn, stop.requested) {
        Err(DataError::Interrupted) => {
            stop.check()?;
            return Err(TrainError::Abandoned);
        }
        thumbnails => thumbnails?,
    };
    stop.done()?;
    Ok(thumbnails)
}

impl TrainData {
    /// Thumbnails of samples as evaluation sees them.
    ///
    /// # Errors
    /// [`DataError::Interrupted`] if `stop` becomes true.
    pub(crate) fn thumbnails(
        &self,
        ids: &[u64],
        recipe: &Recipe,
        warn: &Warn,
        stop: &AtomicBool,
    ) -> Result<Thumbnails, DataError> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let mut thumbnails = Thumbnails::default();
        for (side, pixels) in SIDES.iter().zip(&mut thumbnails.pixels) {
            let mut seen = Vec::new();
            let mut batches = self.scaled(&ids, *side as u32, recipe)?.warning(Arc::clone(warn));
            while let Some(batch) = batches.next_unless(&mut || stop.load(Ordering::Relaxed)) {
                let batch = batch?;
                seen.extend_from_slice(&batch.ids);
                pixels.extend_from_slice(&batch.pixels);
            }
            thumbnails.ids = seen;
        }
        for &id in &thumbnails.ids {
            thumbnails.names.push(self.images.name(id)?);
        }
        Ok(thumbnails)
    }

    /// Samples in order, each as evaluation sees it, but `side` pixels wide.
    fn scaled(
        &self,
        ids: &[u64],
        side: u32,
        recipe: &Recipe,
    ) -> Result<EvalLoader<ImageViews<Augment>>, DataError> {
        let views = &*self.augment;
        let resize = u64::from(views.evaluation.resize) * u64::from(side) / u64::from(views.size.max(1));
        let evaluation = EvalView { resize: (resize as u32).max(side) };
        let views = Arc::new(Augment { size: side, evaluation, ..views.clone() });
        let stream = SampleStream { ids: ids.into(), batch: SIDES[0] as u32 };
        let (corrupt, workers) = (recipe.loader.corrupt(), self.workers);
        EvalLoader::new(ImageViews::new(Arc::clone(&self.images), views), stream, corrupt, workers)
    }
}
