//! Labelled samples that do not belong to a run, and the predictions of its model on them, for `evaluate --on` and
//! `calibrate`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_io::error::FileError;
use calmix_io::scratch_folder::ScratchFolder;
use calmix_io::shown::shown;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_recipe::Data;

use crate::error::CliError;
use crate::output::format::counted;
use crate::predict::input_kind::InputKind;
use crate::preparation::prepare_or_stop;
use crate::process::stop::Stop;
use crate::terminal::{status, warn};

/// The most classes of a model that a message names.
const NAMED: usize = 20;

/// The prefix of the folder for a table of labelled samples.
const READING: &str = ".calmix-labelled-";

/// The predictions of a model on labelled samples.
#[derive(Debug)]
pub struct LabelledPredictions {
    /// Sample ids of the dataset, labels as the model numbers its classes, and logits.
    pub predictions: Predictions,
    /// The number of samples that could not be read and were left out.
    pub skipped: u64,
    /// Why the first of them could not be read; empty if there is none.
    pub first_skipped: String,
}

impl LabelledPredictions {
    /// No predictions yet, of a model with these classes.
    pub fn empty(classes: &[String]) -> Self {
        Self {
            predictions: Predictions {
                step: 0,
                split: EvalSet::Test,
                model: EvalModel::Ema,
                classes: classes.to_vec(),
                ids: Vec::new(),
                labels: Vec::new(),
                logits: Vec::new(),
                groups: Vec::new(),
            },
            skipped: 0,
            first_skipped: String::new(),
        }
    }

    /// Refuses to go on without any prediction, and warns about samples that were left out.
    ///
    /// # Errors
    /// If there is no prediction.
    pub fn check(&self, path: &Path, kind: InputKind) -> Result<()> {
        let word = kind.word();
        if self.predictions.labels.is_empty() {
            let message = format!("{}: none of the labelled {word}s could be read", shown(path.display()));
            return Err(CliError::invalid(message).into());
        }
        if self.skipped > 0 {
            let samples = counted(self.skipped, word);
            let first = shown(&self.first_skipped);
            warn(&format!("{samples} could not be read and were left out ({first})"));
        }
        Ok(())
    }
}

/// A folder for the table of labelled samples, which is removed when it is dropped.
///
/// # Errors
/// If the folder for temporary files cannot be written.
pub(crate) fn scratch_folder() -> Result<ScratchFolder, FileError> {
    ScratchFolder::new(&std::env::temp_dir(), READING)
}

/// Reads labelled samples, in any format of `calmix prepare`, into a table in `scratch`.
///
/// # Errors
/// If they cannot be read, or the user stops it.
pub(crate) fn open(data: &Data, path: &Path, scratch: &Path, stop: &Stop) -> Result<Dataset> {
    status(&format!("reading {} …", shown(path.display())));
    let table = scratch.join("prepared");
    let report = prepare_or_stop(&data.source_spec(), path, &table, stop)?;
    if let Some(first) = report.unreadable.first() {
        let left_out = counted(report.left_out, "place");
        warn(&format!("{left_out} left out: {first}"));
    }
    Ok(Dataset::open(&table, path)?)
}

/// Returns the only subset that has labels; an error if there are several or none.
///
/// # Errors
/// If the table cannot be read, too.
pub(crate) fn only_subset(path: &Path, dataset: &Dataset, kind: InputKind) -> Result<String> {
    let mut labelled = Vec::new();
    for subset in &dataset.header().subsets {
        for record in dataset.records(subset.first..subset.first + subset.count) {
            if record?.1.class().is_some() {
                labelled.push(subset.name.as_str());
                break;
            }
        }
    }
    let place = shown(path.display());
    match labelled.as_slice() {
        [name] => Ok((*name).to_owned()),
        [] => Err(no_labels(path, None, kind).into()),
        [.., last] => {
            let message = format!("{place}: several subsets have labels: {}", labelled.join(", "));
            Err(CliError::invalid(message)
                .hint(format!("choose one of them: --subset {}", shown(last)))
                .into())
        }
    }
}

/// The error about samples without any label.
pub(crate) fn no_labels(path: &Path, subset: Option<&str>, kind: InputKind) -> CliError {
    let place = shown(path.display());
    let subset = subset.map(|subset| format!(", subset {}", shown(subset))).unwrap_or_default();
    let hint = match kind {
        InputKind::Image => {
            "put images into one folder per class, or name the column of their classes: --label-column NAME"
        }
        InputKind::Vector => {
            "name the file of their labels: --labels FILE, or the column that holds them: --label-column NAME"
        }
    };
    CliError::invalid(format!("{place}{subset}: there are no labelled {}s", kind.word())).hint(hint)
}

/// Returns the samples that have a label, of one subset or of all.
///
/// # Errors
/// If there is no such subset, or the table cannot be read.
pub(crate) fn labelled_ids(dataset: &Dataset, subset: Option<&str>) -> Result<Vec<u64>, DataError> {
    let ids = subset.map_or(Ok(0..dataset.len()), |name| dataset.subset(name))?;
    let mut labelled = Vec::new();
    for record in dataset.records(ids) {
        let (id, record) = record?;
        labelled.extend(record.class().map(|_| id));
    }
    Ok(labelled)
}

/// Returns the number that the model gives to each class of a dataset: classes are matched by name.
///
/// # Errors
/// The first class that the model does not have.
pub(crate) fn class_numbers<'a>(classes: &'a [String], of_model: &[String]) -> Result<Vec<u32>, &'a str> {
    let known: BTreeMap<&str, u32> = of_model.iter().map(String::as_str).zip(0..).collect();
    classes.iter().map(|class| known.get(class.as_str()).copied().ok_or(class.as_str())).collect()
}

/// The error about a class that the model does not have.
pub(crate) fn unknown_class(path: &Path, class: &str, of_model: &[String]) -> CliError {
    let message = format!("{}: the model has no class {}", shown(path.display()), shown(class));
    let more = if of_model.len() > NAMED { ", …" } else { "" };
    let known: Vec<_> = of_model.iter().take(NAMED).map(shown).collect();
    let hint = format!("rename or remove the class; the classes of the model are {}{more}", known.join(", "));
    CliError::invalid(message).hint(hint)
}
