//! Strictly checks that a safetensors file has the weights of a network under the names of the PyTorch networks.
//!
//! A file has exactly the tensors of its network, with the right shapes, in f32 (in i64 for `num_batches_tracked`), and all
//! values are finite. A pretrained file may have a classifier for other classes or none, because its classifier is never
//! used.

use std::collections::BTreeSet;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::layout::Layout;

/// Why a file does not have this network's weights.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsProblem {
    #[error("not a safetensors file: {0}")]
    Format(safetensors::SafeTensorError),
    /// The tensors are not those of the network.
    #[error("these are not the weights of this network: {}", names(.missing, .unexpected))]
    Names {
        /// Tensors of the network that are not in the file.
        missing: Vec<String>,
        /// Tensors of the file that are not in the network.
        unexpected: Vec<String>,
    },
    #[error("`{name}` has the shape {got:?}, but the network needs {wanted:?}")]
    Shape { name: String, wanted: Vec<usize>, got: Vec<usize> },
    #[error("`{name}` is {got}, but must be {wanted}")]
    Type { name: String, wanted: &'static str, got: String },
    /// A file that is too short for the network.
    #[error("{length} bytes, but the weights of the network need at least {needed}")]
    Length { length: usize, needed: usize },
    /// A weight that is NaN or infinite.
    #[error("`{name}` has a non-finite number at position {place}")]
    NotFinite {
        name: String,
        /// The index of the value, from 0.
        place: usize,
    },
}

impl From<safetensors::SafeTensorError> for WeightsProblem {
    fn from(error: safetensors::SafeTensorError) -> Self {
        Self::Format(error)
    }
}

fn names(missing: &[String], unexpected: &[String]) -> String {
    let some = |what: &str, names: &[String]| match names {
        [] => None,
        [one] => Some(format!("{what} `{one}`")),
        [first, ..] => Some(format!("{what} {} tensors such as `{first}`", names.len())),
    };
    let parts = [some("missing", missing), some("unexpected", unexpected)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the maximum size of a network's file in bytes: its numbers, with room for names and shapes.
pub fn max_bytes(layout: &Layout) -> u64 {
    const HEADER: usize = 64 << 10;
    const ENTRY: usize = 256;
    let statistics = layout.statistics.iter().map(|layer| 8 * layer.channels + 8);
    let numbers = 4 * layout.len() + statistics.sum::<usize>();
    let entries = layout.parameters.len() + 3 * layout.statistics.len();
    (HEADER + ENTRY * entries + numbers) as u64
}

/// Returns the maximum size of a file with the backbone of a network in bytes, with room for any classifier.
pub fn max_backbone_bytes(layout: &Layout) -> u64 {
    /// 30,000 classes of 2,048 features.
    const CLASSIFIER: u64 = 256 << 20;
    max_bytes(layout) + CLASSIFIER
}

/// Checks that a file has the tensors of a network by name, and is long enough for its numbers.
pub fn check(layout: &Layout, file: &[u8]) -> Result<(), WeightsProblem> {
    check_names(layout, Part::Network, &SafeTensors::deserialize(file)?, true)?;
    let (length, needed) = (file.len(), layout.len().saturating_mul(4));
    if length >= needed { Ok(()) } else { Err(WeightsProblem::Length { length, needed }) }
}

/// The weights to take from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Network,
    /// All except the classifier, which stays as it is.
    Backbone,
}

/// Refuses a safetensors file without a network's backbone; its classifier may be any or none.
///
/// # Errors
/// If it is not safetensors, or names, shapes or types differ.
pub fn check_backbone(layout: &Layout, file: &[u8]) -> Result<(), WeightsProblem> {
    let file = SafeTensors::deserialize(file)?;
    check_names(layout, Part::Backbone, &file, true)?;
    let backbone = layout.parameters.iter().filter(|parameter| !layout.is_of_classifier(&parameter.name));
    for parameter in backbone {
        numbers(&file, &parameter.name, &parameter.shape)?;
    }
    for layer in &layout.statistics {
        let [mean, variance, tracked] = statistics_names(&layer.name);
        numbers(&file, &mean, &[layer.channels])?;
        numbers(&file, &variance, &[layer.channels])?;
        count(&file, &tracked)?;
    }
    Ok(())
}

/// Returns the names of the statistics of a BatchNorm: mean, variance, and number of batches.
pub fn statistics_names(layer: &str) -> [String; 3] {
    ["running_mean", "running_var", "num_batches_tracked"].map(|what| format!("{layer}.{what}"))
}

/// Refuses a file whose tensors are not those of the network, or of its backbone.
pub fn check_names(
    layout: &Layout,
    part: Part,
    file: &SafeTensors<'_>,
    statistics: bool,
) -> Result<(), WeightsProblem> {
    let counts = |name: &String| part == Part::Network || !layout.is_of_classifier(name);
    let mut wanted: BTreeSet<String> =
        layout.parameters.iter().map(|p| p.name.clone()).filter(counts).collect();
    if statistics {
        wanted.extend(layout.statistics.iter().flat_map(|layer| statistics_names(&layer.name)));
    }
    let got: BTreeSet<String> = file.names().into_iter().map(str::to_owned).filter(counts).collect();
    if wanted == got {
        return Ok(());
    }
    Err(WeightsProblem::Names {
        missing: wanted.difference(&got).cloned().collect(),
        unexpected: got.difference(&wanted).cloned().collect(),
    })
}

fn checked<'a>(
    file: &SafeTensors<'a>,
    name: &str,
    shape: &[usize],
    (dtype, wanted): (Dtype, &'static str),
) -> Result<TensorView<'a>, WeightsProblem> {
    let tensor = file.tensor(name)?;
    if tensor.dtype() != dtype {
        let got = tensor.dtype().to_string();
        return Err(WeightsProblem::Type { name: name.to_owned(), wanted, got });
    }
    if tensor.shape() != shape {
        let (wanted, got) = (shape.to_vec(), tensor.shape().to_vec());
        return Err(WeightsProblem::Shape { name: name.to_owned(), wanted, got });
    }
    Ok(tensor)
}

/// Reads a tensor of finite numbers.
///
/// # Errors
/// If it is missing, has another type or shape, or is not finite.
pub fn numbers(file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, WeightsProblem> {
    let tensor = checked(file, name, shape, (Dtype::F32, "F32"))?;
    let (numbers, _) = tensor.data().as_chunks::<4>();
    let numbers: Vec<f32> = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(place) => Err(WeightsProblem::NotFinite { name: name.to_owned(), place }),
        None => Ok(numbers),
    }
}

/// Reads a tensor that holds a single integer.
///
/// # Errors
/// If it is missing, or has another type or shape.
pub fn count(file: &SafeTensors<'_>, name: &str) -> Result<i64, WeightsProblem> {
    let tensor = checked(file, name, &[], (Dtype::I64, "I64"))?;
    let (numbers, _) = tensor.data().as_chunks::<8>();
    Ok(numbers.first().map_or(0, |&bytes| i64::from_le_bytes(bytes)))
}
