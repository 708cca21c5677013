//! Predictions of a model on the labelled images of a folder, for `evaluate --on` and `calibrate`.

use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use calmix::command::prepare::prepare_or_stop;
use calmix::data::dataset::Dataset;
use calmix::data::error::DataError;
use calmix::data::loader::Workers;
use calmix::error::CliError;
use calmix::format::counted;
use calmix::io::shown::shown;
use calmix::recipe::Data;
use calmix::recipe::detect_source;
use calmix::stop::Stop;
use calmix::terminal::{status, warn};

use crate::model::Model;
use crate::model::{LabelledPredictions, ModelError};

/// The most classes of a model that a message names.
const NAMED: usize = 20;

/// Reads a folder of labelled images, in any format of `calmix prepare`, into a table in `scratch`. Large images are shrunk
/// as for the model's training, so that the same images have the same table.
pub(crate) fn open(model: &Model, folder: &Path, scratch: &Path, stop: &Stop) -> Result<Dataset> {
    status(&format!("reading {} …", shown(folder.display())));
    let table = scratch.join("prepared");
    let spec = Data { source: detect_source(folder, false), shrink: model.shrink(), ..Data::default() }
        .source_spec();
    let report = prepare_or_stop(&spec, folder, &table, stop)?;
    if let Some(first) = report.unreadable.first() {
        let left_out = counted(report.left_out, "place");
        warn(&format!("{left_out} left out: {first}"));
    }
    Ok(Dataset::open(&table, folder)?)
}

/// Returns the only subset that has labels; an error if there are several or none.
pub(crate) fn only_subset(folder: &Path, dataset: &Dataset) -> Result<String> {
    let mut labelled = Vec::new();
    for subset in &dataset.header().subsets {
        for record in dataset.records(subset.first..subset.first + subset.count) {
            if record?.1.class().is_some() {
                labelled.push(subset.name.as_str());
                break;
            }
        }
    }
    let folder = shown(folder.display());
    match labelled.as_slice() {
        [name] => Ok((*name).to_owned()),
        [] => Err(CliError::invalid(format!("{folder}: there are no labelled images")).into()),
        [.., last] => {
            let message = format!("{folder}: several subsets have labels: {}", labelled.join(", "));
            Err(CliError::invalid(message)
                .hint(format!("choose one of them: --subset {}", shown(last)))
                .into())
        }
    }
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
            let message = format!("{}: the model has no class {}", shown(folder.display()), shown(class));
            let more = if known.len() > NAMED { ", …" } else { "" };
            let known: Vec<_> = known.iter().take(NAMED).map(shown).collect();
            let hint = format!(
                "rename or remove the class; the classes of the model are {}{more}",
                known.join(", ")
            );
            return Err(CliError::invalid(message).hint(hint).into());
        }
        found => found?,
    };
    if found.predictions.labels.is_empty() {
        let message = format!("{}: none of the labelled images could be read", shown(folder.display()));
        return Err(CliError::invalid(message).into());
    }
    if found.skipped > 0 {
        let (images, first) = (counted(found.skipped, "image"), shown(&found.first_skipped));
        warn(&format!("{images} could not be read and were left out ({first})"));
    }
    Ok(Some(found))
}
