//! Reading and writing weights as safetensors. A file is checked completely before any of it is used.

pub use calmix_recipe::network::weights::{Part, WeightsProblem};
pub(crate) use calmix_recipe::network::weights::{check, max_bytes};
use calmix_recipe::network::weights::{check_names, count, numbers, statistics_names};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use tch::{Kind, TchError, Tensor};

use crate::error::EngineError;
use crate::network::parameters::{Flat, REGIONS};
use crate::network::statistics::RunningStatistics;
use crate::network::{Layout, ParameterId, Region, StatisticsId};

/// Writes the tensors of a network, with their running statistics if given.
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
        .map_err(WeightsProblem::from)?;
    Ok(safetensors::serialize(views, None).map_err(WeightsProblem::from)?)
}

/// Loads a file into the network. If the file is refused, nothing has changed.
pub(crate) fn read(
    layout: &Layout,
    part: Part,
    file: &[u8],
    parameters: &mut Flat,
    statistics: Option<&mut RunningStatistics>,
) -> Result<(), EngineError> {
    let file = SafeTensors::deserialize(file).map_err(WeightsProblem::from)?;
    check_names(layout, part, &file, statistics.is_some())?;
    let current = parameters.weights(layout, Kind::Float)?;
    let mut pieces = Vec::new();
    for region in REGIONS {
        for (id, parameter) in layout.of(region) {
            if part == Part::Backbone && layout.is_of_classifier(&parameter.name) {
                pieces.push(current.at(id).f_detach()?.f_reshape([-1])?);
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

fn bytes(tensor: &Tensor) -> Result<Vec<u8>, TchError> {
    let tensor = tensor.f_detach()?.f_contiguous()?.f_reshape([-1])?;
    let numbers: Vec<f32> = Vec::<f32>::try_from(&tensor)?;
    Ok(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
}
