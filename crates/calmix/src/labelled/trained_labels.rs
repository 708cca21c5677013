//! Labelled samples that do not belong to a run, and which of them its model was trained on: it is more confident on those
//! than on new ones.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_io::shown::shown;
use calmix_lifecycle::trained_samples::trained_samples;

use crate::labelled::samples::{labelled_ids, no_labels};
use crate::output::format::{counted, grouped};
use crate::predict::input_kind::InputKind;
use crate::terminal::warn;

/// The most samples that a message names.
const NAMED: usize = 3;

/// The labelled samples of a dataset, and those that a model was trained on.
#[derive(Debug)]
pub(crate) struct TrainedLabels {
    labelled: Vec<u64>,
    /// In order; `None` if they could not be compared.
    trained: Option<BTreeSet<u64>>,
    /// The first of them, in words.
    examples: String,
    word: &'static str,
}

impl TrainedLabels {
    /// Compares the labelled samples of `dataset`, which was read from `path`, with those that the run in `run` was trained
    /// on, labelled or not. Warns if they cannot be compared.
    ///
    /// # Errors
    /// If there are no labels, or the dataset cannot be read.
    pub(crate) fn find(
        run: &Path,
        path: &Path,
        dataset: &Dataset,
        subset: Option<&str>,
        kind: InputKind,
    ) -> Result<Self> {
        let labelled = labelled_ids(dataset, subset)?;
        if labelled.is_empty() {
            return Err(no_labels(path, subset, kind).into());
        }
        let word = kind.word();
        let trained = match trained_samples(run, dataset, &labelled) {
            Ok(trained) => Some(trained),
            Err(error) => {
                warn(&format!("cannot check whether the model was trained on these {word}s: {error}"));
                None
            }
        };
        let mut examples = Vec::new();
        for &id in trained.iter().flatten().take(NAMED) {
            examples.push(shown(dataset.sample_name(id)?));
        }
        let more = if trained.as_ref().is_some_and(|trained| trained.len() > NAMED) { ", …" } else { "" };
        let examples = examples.join(", ") + more;
        Ok(Self { labelled, trained, examples, word })
    }

    /// All labelled samples.
    pub(crate) fn labelled(&self) -> &[u64] {
        &self.labelled
    }

    /// The labelled samples that the model was not trained on; all of them if they could not be compared.
    pub(crate) fn untrained(&self) -> Vec<u64> {
        let is_trained = |id: &u64| self.trained.as_ref().is_some_and(|trained| trained.contains(id));
        self.labelled.iter().copied().filter(|id| !is_trained(id)).collect()
    }

    /// Whether the samples could be compared.
    pub(crate) fn is_checked(&self) -> bool {
        self.trained.is_some()
    }

    /// The number of labelled samples that the model was trained on; `None` if they could not be compared.
    pub(crate) fn trained(&self) -> Option<usize> {
        self.trained.as_ref().map(BTreeSet::len)
    }

    /// Says how many samples the model was trained on, and names the first; `None` if there are none.
    pub(crate) fn sentence(&self) -> Option<String> {
        let trained = self.trained().filter(|&trained| trained > 0)?;
        let labelled = counted(self.labelled.len() as u64, &format!("labelled {}", self.word));
        let trained = grouped(trained as u64);
        Some(format!("the model was trained on {trained} of {labelled} ({})", self.examples))
    }
}
