//! From the features of a frozen backbone to the input of a head: centred, scaled to unit length, and rotated to fewer
//! dimensions by a principal component analysis, which is not whitened.

use tch::{Device, Kind, TchError, Tensor};

use crate::error::EngineError;
use crate::network::{Init, Layout, Parameter, ParameterId};
use crate::parameters::Flat;
use crate::scalar::guarded;
use crate::weights::{self, Part};

const MEAN: ParameterId = ParameterId(0);
const ROTATION: ParameterId = ParameterId(1);
/// Keeps a feature vector that is the mean itself away from a division by zero.
const SHORTEST: f64 = 1e-12;

/// Rows that are projected at once; the last ones are filled up.
const ROWS: usize = 64;

/// The mean of features, and the directions that are kept of them.
#[derive(Debug)]
pub struct Projection {
    layout: Layout,
    numbers: Flat,
    width: usize,
}

impl Projection {
    /// Fits it to features, f16 with `width` per row, and keeps the given number of dimensions; 0 for all.
    ///
    /// # Errors
    /// If there are no whole rows, or libtorch fails.
    pub fn fit(features: &[u8], width: usize, dimensions: usize) -> Result<Self, EngineError> {
        let _no_gradient = tch::no_grad_guard();
        let kept = if dimensions == 0 { width } else { dimensions.min(width) };
        let rows = f32_rows(features, width)?;
        if rows.size().first() == Some(&0) {
            return Err(EngineError::Misfit("there are no features to fit a projection to".to_owned()));
        }
        let mean =
            rows.f_to_kind(Kind::Double)?.f_mean_dim(0, false, Kind::Double)?.f_to_kind(Kind::Float)?;
        let rotation = if kept == width {
            Tensor::f_eye(width as i64, (Kind::Float, Device::Cpu))?
        } else {
            let unit = unit(&rows.f_sub(&mean)?)?;
            let moments = unit.f_transpose(0, 1)?.f_matmul(&unit)?.f_to_kind(Kind::Double)?;
            // Ascending: the last ones hold the most.
            let (_, directions) = moments.f_linalg_eigh("L")?;
            let directions = directions.f_narrow(1, (width - kept) as i64, kept as i64)?.f_flip([1])?;
            signed(&directions.f_transpose(0, 1)?)?.f_to_kind(Kind::Float)?
        };
        let layout = layout(width, kept);
        let mut numbers = Flat::zeros(&layout, Device::Cpu)?;
        {
            let views = numbers.weights(&layout, Kind::Float)?;
            views.at(MEAN).shallow_clone().f_copy_(&mean)?;
            views.at(ROTATION).shallow_clone().f_copy_(&rotation)?;
        }
        numbers.buffer = numbers.buffer.f_contiguous()?;
        Ok(Self { layout, numbers, width })
    }

    /// Reads what [`to_file`](Self::to_file) wrote.
    ///
    /// # Errors
    /// If it is not the projection of `width` features to that number of dimensions.
    pub fn from_file(file: &[u8], width: usize, dimensions: usize) -> Result<Self, EngineError> {
        let layout = layout(width, if dimensions == 0 { width } else { dimensions.min(width) });
        weights::check(&layout, file)?;
        let mut numbers = Flat::zeros(&layout, Device::Cpu)?;
        weights::read(&layout, Part::Network, file, &mut numbers, None)?;
        Ok(Self { layout, numbers, width })
    }

    /// As a safetensors file: `features.mean` and `features.rotation`.
    ///
    /// # Errors
    /// If libtorch fails.
    pub fn to_file(&self) -> Result<Vec<u8>, EngineError> {
        weights::write(&self.layout, &self.numbers, None)
    }

    /// Bytes of the longest file.
    pub fn longest_file(width: usize) -> u64 {
        weights::longest(&layout(width, width))
    }

    /// The number of features per row before the projection.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of dimensions per row after the projection.
    pub fn dimensions(&self) -> usize {
        self.layout
            .parameters
            .get(ROTATION.0)
            .and_then(|rotation| rotation.shape.first())
            .copied()
            .unwrap_or(0)
    }

    /// Rows of f16 features to rows of f32 numbers, as bytes. The result of a row does not depend on the other rows.
    ///
    /// # Errors
    /// If there are no whole rows, or libtorch fails.
    pub fn apply(&self, features: &[u8]) -> Result<Vec<u8>, EngineError> {
        let _no_gradient = tch::no_grad_guard();
        let views = self.numbers.weights(&self.layout, Kind::Float)?;
        let (mean, rotation) = (views.at(MEAN), views.at(ROTATION).f_transpose(0, 1)?);
        let each = 2 * self.width;
        let mut out = Vec::with_capacity(features.len() / each.max(1) * self.dimensions() * size_of::<f32>());
        for shown in features.chunks((ROWS * each).max(1)) {
            let rows = f32_rows(shown, self.width)?;
            let count = shown.len() / each;
            let filling =
                Tensor::f_zeros([(ROWS - count) as i64, self.width as i64], (Kind::Float, Device::Cpu))?;
            let rows = Tensor::f_cat(&[&rows, &filling], 0)?;
            let turned = unit(&rows.f_sub(mean)?)?.f_matmul(&rotation)?.f_narrow(0, 0, count as i64)?;
            out.extend(bytes(&turned)?);
        }
        Ok(out)
    }
}

fn layout(width: usize, kept: usize) -> Layout {
    let parameter = |name: &str, shape: &[usize]| Parameter {
        name: name.to_owned(),
        shape: shape.to_vec(),
        init: Init::Constant(0.0),
    };
    Layout {
        parameters: vec![
            parameter("features.mean", &[width]),
            parameter("features.rotation", &[kept, width]),
        ],
        ..Layout::default()
    }
}

/// Rows of f16 numbers as f32.
fn f32_rows(features: &[u8], width: usize) -> Result<Tensor, EngineError> {
    let each = 2 * width;
    if each == 0 || !features.len().is_multiple_of(each) {
        let rows = features.len() / each.max(1);
        return Err(EngineError::Batch { batch: "features", rows, what: "bytes", got: features.len() });
    }
    let shape = [(features.len() / each) as i64, width as i64];
    Ok(Tensor::f_from_data_size(features, &shape, Kind::Half)?.f_to_kind(Kind::Float)?)
}

/// Each row divided by its length.
fn unit(rows: &Tensor) -> Result<Tensor, TchError> {
    let length = guarded(|| rows.f_norm_scalaropt_dim(2.0, 1, true))?;
    let length = guarded(|| length.f_clamp_min(SHORTEST))?;
    rows.f_div(&length)
}

/// Each row with the sign that makes its largest number positive: an eigenvector has two.
fn signed(rows: &Tensor) -> Result<Tensor, TchError> {
    let (_, largest) = rows.f_abs()?.f_max_dim(1, true)?;
    rows.f_mul(&rows.f_gather(1, &largest, false)?.f_sign()?)
}

/// The numbers of a tensor as bytes.
pub(crate) fn bytes(tensor: &Tensor) -> Result<Vec<u8>, TchError> {
    let tensor = tensor.f_contiguous()?;
    let count = tensor.numel();
    let mut bytes = vec![0; count * tensor.f_kind()?.elt_size_in_bytes()];
    tensor.f_copy_data_u8(&mut bytes, count)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves(rows: &[[f32; 3]]) -> Vec<u8> {
        bytes(&Tensor::from_slice2(rows).to_kind(Kind::Half)).unwrap()
    }

    fn numbers(bytes: &[u8]) -> Vec<f32> {
        bytes.as_chunks().0.iter().map(|&number| f32::from_le_bytes(number)).collect()
    }

    /// Points on a line through (1, 1, 1), and a little beside it: one direction holds almost all.
    fn line() -> Vec<u8> {
        let points: Vec<[f32; 3]> = (0..200)
            .map(|n| {
                let (t, off) = (n as f32 / 25.0 - 4.0, if n % 2 == 0 { 0.05 } else { -0.05 });
                [1.0 + 2.0 * t, 1.0 - 2.0 * t + off, 1.0 + t]
            })
            .collect();
        halves(&points)
    }

    #[test]
    fn the_first_direction_is_that_of_the_data() {
        let projection = Projection::fit(&line(), 3, 1).unwrap();
        let seen = numbers(&projection.apply(&line()).unwrap());
        assert_eq!(seen.len(), 200);
        // Points far from the mean.
        assert!(seen[..90].iter().all(|x| (0.95..=1.0001).contains(&x.abs())), "{seen:?}");
        // The largest number of the direction is positive: 2/3 of its length.
        assert!(seen[199] > 0.0);
    }

    #[test]
    fn a_row_does_not_depend_on_its_neighbours_and_a_file_keeps_every_bit() {
        let (features, each) = (line(), 3 * 2);
        let projection = Projection::fit(&features, 3, 2).unwrap();
        let whole = projection.apply(&features).unwrap();
        let again = Projection::from_file(&projection.to_file().unwrap(), 3, 2).unwrap();
        for row in [0, 63, 64, 199] {
            let alone = again.apply(&features[row * each..(row + 1) * each]).unwrap();
            assert_eq!(alone, whole[row * 8..(row + 1) * 8], "{row}");
        }
        assert!(Projection::from_file(&projection.to_file().unwrap(), 3, 3).is_err());
        assert!(projection.apply(&features[..5]).is_err());
    }

    #[test]
    fn all_dimensions_are_kept_as_they_are() {
        let projection = Projection::fit(&halves(&[[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), 3, 0).unwrap();
        assert_eq!(projection.dimensions(), 3);
        let seen = numbers(&projection.apply(&halves(&[[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]])).unwrap());
        assert!((seen[0] - 0.6).abs() < 1e-6 && (seen[1] - 0.8).abs() < 1e-6, "{seen:?}");
        assert_eq!(seen[3..], [0.0; 3]);
    }
}
