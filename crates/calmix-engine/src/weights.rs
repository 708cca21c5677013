//! Weights in and out as safetensors, under the names of the PyTorch networks, strictly.
//!
//! A file has exactly the tensors of its network: no more and no fewer, of the right shape, in f32 (in i64 for
//! `num_batches_tracked`), all of them finite. A file is checked completely before any of it is used. A pretrained file
//! may have a classifier of other classes or none; its own is never used.

use std::collections::BTreeSet;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use tch::{Kind, TchError, Tensor};

use crate::error::EngineError;
use crate::network::{Layout, ParameterId, Region, StatisticsId};
use crate::parameters::{Flat, REGIONS};
use crate::statistics::RunningStatistics;

/// A file that does not hold this network's weights.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file is not safetensors.
    #[error("not a safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// The tensors are not those of the network.
    #[error("these are not the weights of this network: {}", names(.missing, .unexpected))]
    Names {
        /// In the network but not in the file.
        missing: Vec<String>,
        /// In the file but not in the network.
        unexpected: Vec<String>,
    },
    /// A tensor of another shape.
    #[error("`{name}` has the shape {got:?}, but the network needs {wanted:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// The network's.
        wanted: Vec<usize>,
        /// The file's.
        got: Vec<usize>,
    },
    /// A tensor of another type.
    #[error("`{name}` is {got}, but must be {wanted}")]
    Type {
        /// The tensor.
        name: String,
        /// The network's.
        wanted: &'static str,
        /// The file's.
        got: String,
    },
    /// A file that is too short for the network.
    #[error("{length} bytes, but the weights of the network need at least {needed}")]
    Length {
        /// The file's.
        length: usize,
        /// The network's, at least.
        needed: usize,
    },
    /// A weight that is not a number.
    #[error("`{name}` has a non-finite number at position {place}")]
    NotFinite {
        /// The tensor.
        name: String,
        /// The position of the number, from 0.
        place: usize,
    },
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

/// Bytes of the longest file of a network: its numbers, and room for names and shapes.
pub(crate) fn longest(layout: &Layout) -> u64 {
    const HEADER: usize = 64 << 10;
    const ENTRY: usize = 256;
    let statistics = layout.statistics.iter().map(|layer| 8 * layer.channels + 8);
    let numbers = 4 * layout.len() + statistics.sum::<usize>();
    let entries = layout.parameters.len() + 3 * layout.statistics.len();
    (HEADER + ENTRY * entries + numbers) as u64
}

/// The tensors of a network with everything that belongs to it.
pub(crate) fn write(
    layout: &Layout,
    parameters: &Flat,
    statistics: Option<&RunningStatistics>,
) -> Result<Vec<u8>, EngineError> {
    let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    let weights = parameters.weights(layout, Kind::Float)?;
    for (n, parameter) in layout.parameters.iter().enumerate() {
        let bytes = bytes(weights.at(ParameterId(n)))?;
        tensors.push((parameter.name.clone(), Dtype::F32, parameter.shape.clone(), bytes));
    }
    if let Some(statistics) = statistics {
        for (n, layer) in layout.statistics.iter().enumerate() {
            let (mean, variance) = statistics.at(StatisticsId(n));
            let [mean_name, variance_name, batches_name] = statistics_names(&layer.name);
            tensors.push((mean_name, Dtype::F32, vec![layer.channels], bytes(mean)?));
            tensors.push((variance_name, Dtype::F32, vec![layer.channels], bytes(variance)?));
            tensors.push((batches_name, Dtype::I64, vec![], statistics.batches.to_le_bytes().to_vec()));
        }
    }
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| Ok((name, TensorView::new(*dtype, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(WeightsError::from)?;
    Ok(safetensors::serialize(views, None).map_err(WeightsError::from)?)
}

/// Whether a file has the tensors of a network, by their names, and is long enough for its numbers.
pub(crate) fn check(layout: &Layout, file: &[u8]) -> Result<(), WeightsError> {
    check_names(layout, Part::Network, &SafeTensors::deserialize(file)?, true)?;
    let (length, needed) = (file.len(), layout.len().saturating_mul(4));
    if length >= needed { Ok(()) } else { Err(WeightsError::Length { length, needed }) }
}

/// Which weights are taken from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All weights.
    Network,
    /// All but the classifier, which stays as it is.
    Backbone,
}

/// Loads a file into the network; if it is refused, nothing has changed.
pub(crate) fn read(
    layout: &Layout,
    part: Part,
    file: &[u8],
    parameters: &mut Flat,
    statistics: Option<&mut RunningStatistics>,
) -> Result<(), EngineError> {
    let file = SafeTensors::deserialize(file).map_err(WeightsError::from)?;
    check_names(layout, part, &file, statistics.is_some())?;
    let own = parameters.weights(layout, Kind::Float)?;
    let mut pieces = Vec::new();
    for region in REGIONS {
        for (id, parameter) in layout.of(region) {
            if part == Part::Backbone && layout.is_of_classifier(&parameter.name) {
                pieces.push(own.at(id).f_detach()?.f_reshape([-1])?);
                continue;
            }
            let numbers = Tensor::f_from_slice(&numbers(&file, &parameter.name, &parameter.shape)?)?;
            pieces.push(match (region, &parameter.shape[..]) {
                (Region::Convolution, &[to, from, height, width]) => numbers
                    .f_view([to as i64, from as i64, height as i64, width as i64])?
                    .f_permute([0, 2, 3, 1])?
                    .f_reshape([-1])?,
                _ => numbers,
            });
        }
    }
    let mut running = Vec::new();
    let mut batches = 0;
    if statistics.is_some() {
        for layer in &layout.statistics {
            let [mean, variance, tracked] = statistics_names(&layer.name);
            let shape = [layer.channels];
            running.push((numbers(&file, &mean, &shape)?, numbers(&file, &variance, &shape)?));
            batches = count(&file, &tracked)?;
        }
    }
    let pieces = pieces.iter().map(|piece| piece.f_to_device(parameters.buffer.device()));
    let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
    tch::no_grad(|| parameters.buffer.f_copy_(&Tensor::f_cat(&pieces, 0)?))?;
    if let Some(statistics) = statistics {
        for (n, (mean, variance)) in running.iter().enumerate() {
            statistics.set(StatisticsId(n), mean, variance)?;
        }
        statistics.batches = batches;
    }
    Ok(())
}

/// Refuses a file that is not of a network's backbone.
pub(crate) fn check_backbone(layout: &Layout, file: &[u8]) -> Result<(), WeightsError> {
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

fn statistics_names(layer: &str) -> [String; 3] {
    ["running_mean", "running_var", "num_batches_tracked"].map(|what| format!("{layer}.{what}"))
}

fn check_names(
    layout: &Layout,
    part: Part,
    file: &SafeTensors<'_>,
    statistics: bool,
) -> Result<(), WeightsError> {
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
    Err(WeightsError::Names {
        missing: wanted.difference(&got).cloned().collect(),
        unexpected: got.difference(&wanted).cloned().collect(),
    })
}

fn checked<'a>(
    file: &SafeTensors<'a>,
    name: &str,
    shape: &[usize],
    (dtype, wanted): (Dtype, &'static str),
) -> Result<TensorView<'a>, WeightsError> {
    let tensor = file.tensor(name)?;
    if tensor.dtype() != dtype {
        let got = tensor.dtype().to_string();
        return Err(WeightsError::Type { name: name.to_owned(), wanted, got });
    }
    if tensor.shape() != shape {
        let (wanted, got) = (shape.to_vec(), tensor.shape().to_vec());
        return Err(WeightsError::Shape { name: name.to_owned(), wanted, got });
    }
    Ok(tensor)
}

fn numbers(file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, WeightsError> {
    let tensor = checked(file, name, shape, (Dtype::F32, "F32"))?;
    let (numbers, _) = tensor.data().as_chunks::<4>();
    let numbers: Vec<f32> = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(place) => Err(WeightsError::NotFinite { name: name.to_owned(), place }),
        None => Ok(numbers),
    }
}

fn count(file: &SafeTensors<'_>, name: &str) -> Result<i64, WeightsError> {
    let tensor = checked(file, name, &[], (Dtype::I64, "I64"))?;
    let (numbers, _) = tensor.data().as_chunks::<8>();
    Ok(numbers.first().map_or(0, |&bytes| i64::from_le_bytes(bytes)))
}

fn bytes(tensor: &Tensor) -> Result<Vec<u8>, TchError> {
    let tensor = tensor.f_detach()?.f_contiguous()?.f_reshape([-1])?;
    let numbers: Vec<f32> = Vec::<f32>::try_from(&tensor)?;
    Ok(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
}
