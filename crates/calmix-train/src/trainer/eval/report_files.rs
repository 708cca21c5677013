//! The files that a run writes for its report: the margins of its samples, and thumbnails of example predictions.

use calmix_data::error::DataError;
use calmix_metrics::margin_histogram::SampleMargins;
use calmix_recipe::Recipe;
use calmix_run::tensor_files::examples::Thumbnails;

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
    let thumbnails = match data.images.thumbnails(ids, recipe, stop.warn, stop.requested) {
        Err(DataError::Interrupted) => {
            stop.check()?;
            return Err(TrainError::Abandoned);
        }
        thumbnails => thumbnails?,
    };
    stop.done()?;
    Ok(thumbnails)
}
