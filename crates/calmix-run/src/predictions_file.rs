//! The file of predictions: safetensors with `logits` (f32, samples × classes), `labels` (u32) and `ids` (u64), and under
//! the key `calmix` of its metadata the rest as JSON. NumPy, PyTorch and JAX read it without calmix.

use calmix_io::class_names;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

pub use crate::tensors::TensorsError;
use crate::tensors::{self, Tensors, tensor};

/// Why predictions cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PredictionsError {
    /// The file is not safetensors, or has other tensors.
    #[error("this is not a file of predictions: {0}; it may be cut short: evaluate the checkpoint again")]
    Format(#[from] TensorsError),
    /// The metadata cannot be parsed.
    #[error(
        "the metadata of these predictions cannot be read: {0}; they may come from another version of calmix"
    )]
    Metadata(#[from] serde_json::Error),
    /// The parts are inconsistent, such as more ids than labels.
    #[error("these predictions are inconsistent: {0}")]
    Content(String),
}

/// The metadata. One key, since the order of several would not be fixed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    step: u64,
    split: EvalSet,
    model: EvalModel,
    #[serde(deserialize_with = "class_names::deserialize")]
    classes: Vec<String>,
}

const KEY: &str = "calmix";

/// The name of the file among the predictions of a run.
pub fn file_name(step: u64, split: EvalSet, model: EvalModel) -> String {
    format!("step-{step:09}-{}-{}.safetensors", split.name(), model.name())
}

/// The most bytes that a file with these numbers of samples and classes can have.
pub fn longest(samples: u64, classes: usize) -> u64 {
    /// Bytes of the names of tensors and the like, and of the name of a class, which is escaped twice.
    const HEADER: u64 = 64 << 10;
    const CLASS: u64 = 16 << 10;
    let classes = classes as u64;
    let row = classes.saturating_mul(4).saturating_add(12);
    let header = HEADER.saturating_add(classes.saturating_mul(CLASS));
    samples.saturating_mul(row).saturating_add(header)
}

/// The bytes of the file: the same for the same predictions.
///
/// # Errors
/// If the numbers of ids, labels, logits and classes do not match.
pub fn to_bytes(predictions: &Predictions) -> Result<Vec<u8>, PredictionsError> {
    check(predictions)?;
    let (n, classes) = (predictions.labels.len(), predictions.classes.len());
    let tensors = vec![
        tensor("ids", &[n], &predictions.ids),
        tensor("labels", &[n], &predictions.labels),
        tensor("logits", &[n, classes], &predictions.logits),
    ];
    let about = About {
        step: predictions.step,
        split: predictions.split,
        model: predictions.model,
        classes: predictions.classes.clone(),
    };
    Ok(tensors::write(tensors, Some((KEY, serde_json::to_string(&about)?)))?)
}

/// Reads the bytes of a file.
///
/// # Errors
/// If they are not what [`to_bytes`] writes.
pub fn from_bytes(bytes: &[u8]) -> Result<Predictions, PredictionsError> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(TensorsError::from)?;
    let about = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let no_metadata = || PredictionsError::Content(format!("there is no `{KEY}` in the metadata"));
    let About { step, split, model, classes } = serde_json::from_str(about.ok_or_else(no_metadata)?)?;
    let tensors = Tensors::read(bytes)?;
    let n = tensors.rows("labels")?;
    let predictions = Predictions {
        step,
        split,
        model,
        ids: tensors.numbers("ids", &[n])?,
        labels: tensors.numbers("labels", &[n])?,
        logits: tensors.numbers("logits", &[n, classes.len()])?,
        classes,
    };
    check(&predictions)?;
    Ok(predictions)
}

fn check(predictions: &Predictions) -> Result<(), PredictionsError> {
    let content = |what: String| Err(PredictionsError::Content(what));
    let (ids, labels, classes) = (predictions.ids.len(), predictions.labels.len(), predictions.classes.len());
    if ids != labels {
        return content(format!("{ids} ids and {labels} labels"));
    }
    if let Err(error) = predictions.matrix() {
        return content(format!("{labels} samples of {classes} classes, but {error}"));
    }
    match predictions.labels.iter().position(|&label| label as usize >= classes) {
        Some(row) => {
            content(format!("row {row} has label {}, of {classes} classes", predictions.labels[row]))
        }
        None => Ok(()),
    }
}
