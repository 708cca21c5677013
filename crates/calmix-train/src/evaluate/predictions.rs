//! What a network said about a split, and the file it is kept in.
//!
//! The file is safetensors: `logits` (f32, samples × classes), `labels` (u32) and `ids` (u64), and under the key
//! `calmix` of its metadata the rest as JSON. NumPy, PyTorch and JAX read it without any code of ours.

use std::collections::HashMap;

use calmix_core::calibration::CalibrationError;
use calmix_core::matrix::Matrix;
use calmix_core::rng::Seed;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::events::{Model, Split};

/// Logits and labels of every sample of a split.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// How many updates the network had seen.
    pub step: u64,
    /// Of which split.
    pub split: Split,
    /// Of which weights.
    pub model: Model,
    /// The names of the classes, in the order of the logits.
    pub classes: Vec<String>,
    /// The samples.
    pub ids: Vec<u64>,
    /// Their true classes.
    pub labels: Vec<u32>,
    /// One row of logits per sample.
    pub logits: Vec<f32>,
}

/// Why predictions cannot be kept or read back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PredictionsError {
    /// Not safetensors.
    #[error("these are no predictions: {0}; the file may be cut short, evaluate the checkpoint again")]
    Format(#[from] SafeTensorError),
    /// Not our metadata.
    #[error(
        "the metadata of these predictions cannot be read: {0}; they may come from another version of calmix"
    )]
    Metadata(#[from] serde_json::Error),
    /// Parts that contradict each other.
    #[error("these predictions contradict themselves: {0}")]
    Content(String),
}

/// What does not fit into a tensor. One key, since the order of several would not be fixed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    step: u64,
    split: Split,
    model: Model,
    classes: Vec<String>,
}

const KEY: &str = "calmix";

impl Predictions {
    /// The logits as a matrix.
    ///
    /// # Errors
    /// If there is not one row of as many logits as classes for every label.
    pub fn matrix(&self) -> Result<Matrix<'_>, CalibrationError> {
        let (rows, width) = (self.labels.len(), self.classes.len());
        Matrix::new(&self.logits, rows, width).map_err(|shape| CalibrationError::Length {
            what: "logits",
            expected: rows.saturating_mul(width),
            got: shape.got,
        })
    }

    /// The bytes of the file: the same for the same predictions.
    ///
    /// # Errors
    /// If ids, labels, logits and classes are not equally many.
    pub fn to_bytes(&self) -> Result<Vec<u8>, PredictionsError> {
        self.check()?;
        let (n, classes) = (self.labels.len(), self.classes.len());
        let logits: Vec<u8> = self.logits.iter().flat_map(|z| z.to_le_bytes()).collect();
        let labels: Vec<u8> = self.labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        let ids: Vec<u8> = self.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        let tensors = [
            ("ids", TensorView::new(Dtype::U64, vec![n], &ids)?),
            ("labels", TensorView::new(Dtype::U32, vec![n], &labels)?),
            ("logits", TensorView::new(Dtype::F32, vec![n, classes], &logits)?),
        ];
        let about =
            About { step: self.step, split: self.split, model: self.model, classes: self.classes.clone() };
        let metadata = HashMap::from([(KEY.to_owned(), serde_json::to_string(&about)?)]);
        Ok(safetensors::serialize(tensors, Some(metadata))?)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// If they are not what [`to_bytes`](Self::to_bytes) writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PredictionsError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let about = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let no_metadata = || PredictionsError::Content(format!("there is no `{KEY}` in the metadata"));
        let About { step, split, model, classes } = serde_json::from_str(about.ok_or_else(no_metadata)?)?;
        let tensors = SafeTensors::deserialize(bytes)?;
        let n = tensors.tensor("labels")?.shape().first().copied().unwrap_or(0);
        let predictions = Self {
            step,
            split,
            model,
            ids: numbers(&tensors, "ids", Dtype::U64, &[n])?.map(u64::from_le_bytes).collect(),
            labels: numbers(&tensors, "labels", Dtype::U32, &[n])?.map(u32::from_le_bytes).collect(),
            logits: numbers(&tensors, "logits", Dtype::F32, &[n, classes.len()])?
                .map(f32::from_le_bytes)
                .collect(),
            classes,
        };
        predictions.check()?;
        Ok(predictions)
    }

    /// The seed of the replicates of these samples at this step, whichever the model.
    pub(super) fn seed(&self, of_run: Seed) -> Seed {
        of_run.child(self.step).child(self.split as u64)
    }

    fn check(&self) -> Result<(), PredictionsError> {
        let content = |what: String| Err(PredictionsError::Content(what));
        let (ids, labels, classes) = (self.ids.len(), self.labels.len(), self.classes.len());
        if ids != labels {
            return content(format!("{ids} ids and {labels} labels"));
        }
        if let Err(error) = self.matrix() {
            return content(format!("{labels} samples of {classes} classes, but {error}"));
        }
        match self.labels.iter().position(|&label| label as usize >= classes) {
            Some(row) => content(format!("row {row} has label {}, of {classes} classes", self.labels[row])),
            None => Ok(()),
        }
    }
}

/// The numbers of a tensor that must have this type and shape.
fn numbers<'a, const N: usize>(
    tensors: &SafeTensors<'a>,
    name: &str,
    dtype: Dtype,
    shape: &[usize],
) -> Result<impl Iterator<Item = [u8; N]> + use<'a, N>, PredictionsError> {
    let tensor = tensors.tensor(name)?;
    if tensor.dtype() != dtype || tensor.shape() != shape {
        let (found, dims) = (tensor.dtype(), tensor.shape());
        return Err(PredictionsError::Content(format!(
            "`{name}` is {found:?} {dims:?}, not {dtype:?} {shape:?}"
        )));
    }
    Ok(tensor.data().as_chunks().0.iter().copied())
}
