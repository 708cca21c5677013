//! All parameters of a network in one flat f32 buffer, and views of it for a pass.

use calmix_core::rng::{Domain, Seed};
use tch::{Device, Kind, TchError, Tensor};

use crate::network::{Init, Layout, Parameter, ParameterId, Region};

/// A buffer in the layout of a network's parameters: the parameters themselves, their EMA, or their momentum.
#[derive(Debug)]
pub(crate) struct Flat {
    pub(crate) buffer: Tensor,
}

/// The parameters of one pass: convolutions in its precision, all others in f32.
#[derive(Debug)]
pub(crate) struct PassWeights {
    views: Vec<Tensor>,
}

impl PassWeights {
    pub(crate) fn at(&self, id: ParameterId) -> &Tensor {
        &self.views[id.0]
    }
}

impl Flat {
    pub(crate) fn zeros(layout: &Layout, device: Device) -> Result<Self, TchError> {
        Ok(Self { buffer: Tensor::f_zeros([layout.len() as i64], (Kind::Float, device))? })
    }

    /// Creates the initial parameters: the same bits on every machine, because they do not depend on libtorch.
    pub(crate) fn initial(layout: &Layout, seed: Seed, device: Device) -> Result<Self, TchError> {
        let mut numbers = Vec::with_capacity(layout.len());
        for region in REGIONS {
            for (ParameterId(n), parameter) in layout.of(region) {
                let mut stream = seed.stream(Domain::Init, 0, n as u64);
                numbers.extend((0..parameter.len()).map(|_| match parameter.init {
                    Init::Normal(deviation) => (deviation * stream.normal()) as f32,
                    Init::Constant(value) => value,
                }));
            }
        }
        Ok(Self { buffer: Tensor::f_from_slice(&numbers)?.f_to_device(device)? })
    }

    /// Marks the buffer as the variable of differentiation.
    pub(crate) fn differentiable(self) -> Result<Self, TchError> {
        Ok(Self { buffer: self.buffer.f_set_requires_grad(true)? })
    }

    pub(crate) fn copy(&self) -> Result<Self, TchError> {
        Ok(Self { buffer: self.buffer.f_detach_copy()? })
    }

    /// Returns the parameters for a pass in `precision`. Differentiating with respect to the buffer gives one flat gradient in
    /// the same layout.
    pub(crate) fn weights(&self, layout: &Layout, precision: Kind) -> Result<PassWeights, TchError> {
        let sizes = REGIONS.map(|region| layout.len_of(region) as i64);
        let regions = self.buffer.f_split_with_sizes(sizes.as_slice(), 0)?;
        let mut views: Vec<Option<Tensor>> = layout.parameters.iter().map(|_| None).collect();
        for (region, numbers) in REGIONS.into_iter().zip(regions) {
            // Cast all convolutions at once.
            let numbers = if region == Region::Convolution { numbers.f_to_kind(precision)? } else { numbers };
            let sizes: Vec<i64> = layout.of(region).map(|(_, parameter)| parameter.len() as i64).collect();
            let pieces = numbers.f_split_with_sizes(sizes, 0)?;
            for ((ParameterId(n), parameter), piece) in layout.of(region).zip(pieces) {
                views[n] = Some(as_in_files(&piece, parameter)?);
            }
        }
        Ok(PassWeights { views: views.into_iter().flatten().collect() })
    }
}

/// The regions of a flat buffer, in order.
pub(crate) const REGIONS: [Region; 3] = [Region::Convolution, Region::Matrix, Region::Vector];

/// Returns how many numbers at the start of a flat buffer belong to decayed parameters.
pub(crate) fn decayed(layout: &Layout) -> i64 {
    (layout.len_of(Region::Convolution) + layout.len_of(Region::Matrix)) as i64
}

/// Returns a view of a parameter's part of a flat buffer, with the shape it has in files.
fn as_in_files(piece: &Tensor, parameter: &Parameter) -> Result<Tensor, TchError> {
    let shape: Vec<i64> = parameter.shape.iter().map(|&n| n as i64).collect();
    match shape[..] {
        [to, from, height, width] => piece.f_view([to, height, width, from])?.f_permute([0, 3, 1, 2]),
        _ => piece.f_view(shape.as_slice()),
    }
}
