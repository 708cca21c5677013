//! Predictions of a model on the labelled images of a folder, for `evaluate --on` and `calibrate`.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::args::options::labelled::LabelledArgs;
use crate::labelled::samples::{self, unknown_class};
use crate::predict::input_kind::InputKind;
use crate::process::stop::Stop;
use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::Workers;

use crate::model::{LabelledPredictions, Model, ModelError};

/// Reads a folder of labelled images, in any format of `calmix prepare`, into a table in `scratch`.
pub(crate) fn open(
    model: &Model,
    folder: &Path,
    args: &LabelledArgs,
    scratch: &Path,
    stop: &Stop,
) -> Result<Dataset> {
    samples::open(&args.images(folder, model.shrink())?, folder, scratch, stop)
}

/// Predicts labelled images; `None` if the user stops it.
pub(crate) fn predict(
    model: &Model,
    folder: &Path,
    dataset: Dataset,
    ids: &[u64],
    threads: NonZeroUsize,
    stop: &Stop,
) -> Result<Option<LabelledPredictions>> {
    let is_stopped = &mut || stop.flag().load(Ordering::Relaxed);
    let workers = Workers { threads, ..Workers::default() };
    let found = match model.predict_samples(dataset, ids, workers, is_stopped) {
        Err(ModelError::Data(DataError::Interrupted)) => return Ok(None),
        Err(ModelError::UnknownClass { class, known }) => {
            return Err(unknown_class(folder, &class, &known).into());
        }
        found => found?,
    };
    found.check(folder, InputKind::Image)?;
    Ok(Some(found))
}
