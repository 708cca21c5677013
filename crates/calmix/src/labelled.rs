//! Labelled samples from outside a run, and the predictions of the run's model on them. Samples that the model was trained on are
//! found, because it is more confident on those.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_io::error::FileError;
use calmix_io::scratch_folder::ScratchFolder;
use calmix_io::shown::shown;
use calmix_lifecycle::trained_samples::trained_samples;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_recipe::Data;

use crate::error::CliError;
use crate::output::format::{class_list, counted, grouped, list};
use crate::output::preparation::prepare_or_stop;
use crate::predict::input::InputKind;
use crate::process::stop::Stop;
use crate::terminal::{status, warn};

/// The prefix of the scratch folder for labelled samples.
const SCRATCH_PREFIX: &str = ".calmix-labelled-";

/// The predictions of a model on labelled samples.
#[derive(Debug)]
pub struct LabelledPredictions {
    /// The sample ids of the dataset, labels in the model's numbering, and logits.
    pub predictions: Predictions,
    /// The number of samples that were left out because they could not be read.
    pub skipped: u64,
    /// Why the first of these samples could not be read; empty if there is none.
    pub first_skipped: String,
}

impl LabelledPredictions {
    /// Creates an empty list of predictions, of a model with these classes.
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

    /// Fails if there are no predictions, and warns about samples that were left out.
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

/// Creates a folder for prepared labelled samples, which is removed when it is dropped.
pub(crate) fn scratch_folder() -> Result<ScratchFolder, FileError> {
    ScratchFolder::new(&std::env::temp_dir(), SCRATCH_PREFIX)
}

/// Prepares labelled samples, in any format of `calmix prepare`, in `scratch`.
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

/// Returns the only subset with labels; fails if there are several or none.
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

/// Returns the error for samples without any label.
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

/// Returns the samples with a label, of one subset or of all.
pub(crate) fn labelled_ids(dataset: &Dataset, subset: Option<&str>) -> Result<Vec<u64>, DataError> {
    let ids = subset.map_or(Ok(0..dataset.len()), |name| dataset.subset(name))?;
    let mut labelled = Vec::new();
    for record in dataset.records(ids) {
        let (id, record) = record?;
        labelled.extend(record.class().map(|_| id));
    }
    Ok(labelled)
}

/// Divides labelled samples into those that say something about new samples, and the number of chosen ones, which do not.
fn without_chosen(dataset: &Dataset, labelled: Vec<u64>) -> Result<(Vec<u64>, usize), DataError> {
    let all = labelled.len();
    let mut kept = Vec::with_capacity(all);
    for id in labelled {
        if dataset.drawn(id)?.may_be_held_out() {
            kept.push(id);
        }
    }
    let chosen = all - kept.len();
    Ok((kept, chosen))
}

/// Returns the model's number of each class of a dataset. Classes are matched by name.
///
/// # Errors
/// The first class that the model does not have.
pub(crate) fn class_numbers<'a>(classes: &'a [String], of_model: &[String]) -> Result<Vec<u32>, &'a str> {
    let known: BTreeMap<&str, u32> = of_model.iter().map(String::as_str).zip(0..).collect();
    classes.iter().map(|class| known.get(class.as_str()).copied().ok_or(class.as_str())).collect()
}

/// Returns the error for a class that the model does not have.
pub(crate) fn unknown_class(path: &Path, class: &str, of_model: &[String]) -> CliError {
    let message = format!("{}: the model has no class {}", shown(path.display()), shown(class));
    let hint = format!("rename or remove the class; the classes of the model are {}", class_list(of_model));
    CliError::invalid(message).hint(hint)
}

/// The maximum number of samples that a message names.
const MAX_NAMED_SAMPLES: usize = 3;

/// The labelled samples of a dataset, and those that a model was trained on.
#[derive(Debug)]
pub(crate) struct TrainedLabels {
    labelled: Vec<u64>,
    /// The samples that the model was trained on; `None` if they could not be compared.
    trained: Option<BTreeSet<u64>>,
    /// The names of the first of these samples.
    examples: String,
    word: &'static str,
}

impl TrainedLabels {
    /// Compares the labelled samples of `dataset`, which was read from `path`, with those that the run in `run` was trained on,
    /// labelled or not. Warns if they cannot be compared.
    pub(crate) fn find(
        run: &Path,
        path: &Path,
        dataset: &Dataset,
        subset: Option<&str>,
        kind: InputKind,
    ) -> Result<Self> {
        let word = kind.word();
        let labelled = labelled_ids(dataset, subset)?;
        let all = labelled.len();
        let (labelled, chosen) = without_chosen(dataset, labelled)?;
        if chosen > 0 {
            let all = counted(all as u64, &format!("labelled {word}"));
            let chosen = grouped(chosen as u64);
            warn(&format!(
                "{chosen} of {all} are marked as chosen and left out: they are not like new {word}s"
            ));
        }
        if labelled.is_empty() {
            return Err(no_labels(path, subset, kind).into());
        }
        let trained = match trained_samples(run, dataset, &labelled) {
            Ok(trained) => Some(trained),
            Err(error) => {
                warn(&format!("cannot check whether the model was trained on these {word}s: {error}"));
                None
            }
        };
        // Take one more than is named, so that the list shows whether there are more.
        let ids = trained.iter().flatten().take(MAX_NAMED_SAMPLES + 1);
        let names = ids.map(|&id| Ok(shown(dataset.sample_name(id)?))).collect::<Result<Vec<_>>>()?;
        let examples = list(names.into_iter(), MAX_NAMED_SAMPLES);
        Ok(Self { labelled, trained, examples, word })
    }

    /// Returns all labelled samples.
    pub(crate) fn labelled(&self) -> &[u64] {
        &self.labelled
    }

    /// Returns the labelled samples that the model was not trained on; all of them if they could not be compared.
    pub(crate) fn untrained(&self) -> Vec<u64> {
        let is_trained = |id: &u64| self.trained.as_ref().is_some_and(|trained| trained.contains(id));
        self.labelled.iter().copied().filter(|id| !is_trained(id)).collect()
    }

    /// Returns whether the samples could be compared.
    pub(crate) fn is_checked(&self) -> bool {
        self.trained.is_some()
    }

    /// Returns the number of labelled samples that the model was trained on; `None` if they could not be compared.
    pub(crate) fn trained(&self) -> Option<usize> {
        self.trained.as_ref().map(BTreeSet::len)
    }

    /// Returns a sentence with the number of samples that the model was trained on and the names of the first; `None` if there
    /// are none.
    pub(crate) fn sentence(&self) -> Option<String> {
        let trained = self.trained().filter(|&trained| trained > 0)?;
        let labelled = counted(self.labelled.len() as u64, &format!("labelled {}", self.word));
        let trained = grouped(trained as u64);
        Some(format!("the model was trained on {trained} of {labelled} ({})", self.examples))
    }
}
