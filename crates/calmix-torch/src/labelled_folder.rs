//! Predictions of a model on the labelled images of a folder, for `evaluate --on` and `calibrate`.

use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use calmix::data::dataset::Dataset;
use calmix::data::error::DataError;
use calmix::data::loader::Workers;
use calmix::labelled_samples::{self, unknown_class};
use calmix::predict::input_kind::InputKind;
use calmix::recipe::Data;
use calmix::recipe::detect_source;
use calmix::stop::Stop;

use crate::model::Model;
use crate::model::{LabelledPredictions, ModelError};

/// Reads a folder of labelled images, in any format of `calmix prepare`, into a table in `scratch`. Large images are shrunk
/// as for the model's training, so that the same images have the same table.
pub(crate) fn open(model: &Model, folder: &Path, scratch: &Path, stop: &Stop) -> Result<Dataset> {
    let data = Data { source: detect_source(folder, false), shrink: model.shrink(), ..Data::default() };
    labelled_samples::open(&data, folder, scratch, stop)
}

/// Predicts the labelled images, or those of one subset; `None` if the user stops it.
pub(crate) fn predict(
    model: &Model,
    folder: &Path,
    dataset: Dataset,
    subset: Option<&str>,
    stop: &Stop,
) -> Result<Option<LabelledPredictions>> {
    let is_stopped = &mut || stop.flag().load(Ordering::Relaxed);
    let found = match model.predict_labelled(dataset, subset, Workers::default(), is_stopped) {
        Err(ModelError::Data(DataError::Interrupted)) => return Ok(None),
        Err(ModelError::UnknownClass { class, known }) => {
            return Err(unknown_class(folder, &class, &known).into());
        }
        found => found?,
    };
    found.check(folder, InputKind::Image)?;
    Ok(Some(found))
}
