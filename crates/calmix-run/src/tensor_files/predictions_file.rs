//! The file of predictions: safetensors with `logits` (f32, samples × classes), `labels` (u32), `ids` (u64) and, if the
//! samples have groups, `groups` (u32); the remaining fields are JSON under the metadata key `calmix`. NumPy, PyTorch and
//! JAX can read it without calmix.

use calmix_io::class_names;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::tensor_files::tensors::{self, Tensors, tensor};

/// The metadata. They have one key, since the order of several would not be fixed.
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

/// Returns the name of a file in the predictions folder of a run.
pub fn file_name(step: u64, split: EvalSet, model: EvalModel) -> String {
    format!("step-{step:09}-{}-{}.safetensors", split.word(), model.word())
}

/// Returns the maximum size of a file with these numbers of samples and classes, in bytes.
pub fn max_bytes(samples: u64, classes: usize) -> u64 {
    /// Space for the names of tensors and similar fields.
    const HEADER: u64 = 64 << 10;
    /// Space for a class name: escaped twice, a byte takes at most seven.
    const CLASS: u64 = 16 * class_names::MAX_NAME_BYTES as u64;
    let classes = classes as u64;
    let row = classes.saturating_mul(4).saturating_add(16);
    let header = HEADER.saturating_add(classes.saturating_mul(CLASS));
    samples.saturating_mul(row).saturating_add(header)
}

/// Encodes the file; the same predictions always give the same bytes.
pub fn to_bytes(predictions: &Predictions) -> Result<Vec<u8>, RunError> {
    check(predictions)?;
    let n = predictions.labels.len();
    let classes = predictions.classes.len();
    let mut tensors = vec![
        tensor("ids", &[n], &predictions.ids),
        tensor("labels", &[n], &predictions.labels),
        tensor("logits", &[n, classes], &predictions.logits),
    ];
    if !predictions.groups.is_empty() {
        tensors.push(tensor("groups", &[n], &predictions.groups));
    }
    let about = About {
        step: predictions.step,
        split: predictions.split,
        model: predictions.model,
        classes: predictions.classes.clone(),
    };
    let about = serde_json::to_string(&about).map_err(|error| unreadable_metadata(&error))?;
    tensors::write(tensors, Some((KEY, about))).map_err(|error| no_predictions(&error))
}

/// Decodes the file.
pub fn from_bytes(bytes: &[u8]) -> Result<Predictions, RunError> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| no_predictions(&error.into()))?;
    let about = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let about = about.ok_or_else(|| inconsistent(&format!("there is no `{KEY}` in the metadata")))?;
    let about = serde_json::from_str(about).map_err(|error| unreadable_metadata(&error))?;
    let predictions = from_tensors(bytes, about).map_err(|error| no_predictions(&error))?;
    check(&predictions)?;
    Ok(predictions)
}

fn from_tensors(bytes: &[u8], about: About) -> Result<Predictions, RunError> {
    let About { step, split, model, classes } = about;
    let tensors = Tensors::read(bytes)?;
    let n = tensors.rows("labels")?;
    Ok(Predictions {
        step,
        split,
        model,
        ids: tensors.numbers("ids", &[n])?,
        labels: tensors.numbers("labels", &[n])?,
        logits: tensors.numbers("logits", &[n, classes.len()])?,
        groups: if tensors.has("groups") { tensors.numbers("groups", &[n])? } else { Vec::new() },
        classes,
    })
}

fn check(predictions: &Predictions) -> Result<(), RunError> {
    let ids = predictions.ids.len();
    let labels = predictions.labels.len();
    let classes = predictions.classes.len();
    if ids != labels {
        return Err(inconsistent(&format!("{ids} ids and {labels} labels")));
    }
    if let Err(error) = predictions.labelled() {
        return Err(inconsistent(&format!("{labels} samples of {classes} classes, but {error}")));
    }
    let mut labels = predictions.labels.iter().enumerate();
    match labels.find(|(_, label)| **label as usize >= classes) {
        Some((row, label)) => {
            Err(inconsistent(&format!("row {row} has label {label}, of {classes} classes")))
        }
        None => Ok(()),
    }
}

/// Returns the error for a file that is not safetensors, or has other tensors.
fn no_predictions(error: &RunError) -> RunError {
    RunError::Format(format!(
        "this is not a file of predictions: {error}; it may be cut short: evaluate the checkpoint again"
    ))
}

fn unreadable_metadata(error: &serde_json::Error) -> RunError {
    RunError::Format(format!(
        "the metadata of these predictions cannot be read: {error}; they may come from another version of calmix"
    ))
}

/// Returns the error for inconsistent parts, such as more ids than labels.
fn inconsistent(what: &str) -> RunError {
    RunError::Format(format!("these predictions are inconsistent: {what}"))
}
