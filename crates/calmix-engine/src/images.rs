//! The conversion of a batch's bytes to the input of a network: images are uploaded as u8 and normalised on the device, in
//! channels-last layout.

use calmix_recipe::model_spec::ModelSpec;
use tch::{Device, Kind, TchError, Tensor};

use crate::micro_batch_plan::{Image, Mixture};
use crate::scalar::guarded;

/// The format of a network's images: their side, and the normalisation `(value/255 − mean)/std` of each channel, on the device.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) side: usize,
    scale: Tensor,
    shift: Tensor,
}

/// Rows on the device: u8 pixels as (rows, height, width, 3).
#[derive(Debug)]
pub(crate) struct InputRows(Tensor);

impl Input {
    pub(crate) fn new(model: &ModelSpec, device: Device) -> Result<Self, TchError> {
        let channel = |f: &dyn Fn(usize) -> f64| {
            let values: Vec<f32> = (0..3).map(|c| f(c) as f32).collect();
            Tensor::f_from_slice(&values)?.f_to_device(device)
        };
        let scale = channel(&|c| 1.0 / (255.0 * model.std[c]))?;
        let shift = channel(&|c| -model.mean[c] / model.std[c])?;
        Ok(Self { side: model.size as usize, scale, shift })
    }

    /// Returns the size of an image in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.side * self.side * 3
    }

    /// Converts to the input of a network: normalised, f32, (rows, 3, height, width) with the strides of channels-last.
    fn read(&self, rows: &Tensor) -> Result<Tensor, TchError> {
        let numbers = rows.f_to_kind(Kind::Float)?;
        self.shift.f_addcmul(&numbers, &self.scale)?.f_permute([0, 3, 1, 2])
    }

    /// Flattens the input of a network to the numbers of each row, in the order of its bytes.
    pub(crate) fn flat(read: &Tensor) -> Result<Tensor, TchError> {
        read.f_permute([0, 2, 3, 1])?.f_flatten(1, -1)
    }
}

impl InputRows {
    /// Uploads the rows of several buffers, one after the other.
    pub(crate) fn upload(buffers: &[&[u8]], input: &Input, device: Device) -> Result<Self, TchError> {
        let parts: Vec<Tensor> = buffers
            .iter()
            .map(|bytes| {
                let rows = (bytes.len() / input.bytes().max(1)) as i64;
                let shape = [rows, input.side as i64, input.side as i64, 3];
                let rows = Tensor::f_from_data_size(bytes, &shape, Kind::Uint8)?;
                if !device.is_cuda() {
                    return rows.f_to_device(device);
                }
                // From pinned memory, the GPU copies while the host continues; libtorch keeps the memory until then.
                rows.f_pin_memory(device)?.f_to_device_(device, Kind::Uint8, true, false)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self(Tensor::f_cat(&parts, 0)?))
    }

    /// Returns rows `start..start + count` as the input of a network.
    pub(crate) fn read(&self, input: &Input, start: usize, count: usize) -> Result<Tensor, TchError> {
        input.read(&self.0.f_narrow(0, start as i64, count as i64)?)
    }

    /// Computes `λ·a + (1 − λ)·b` of each mixture, after normalisation; `place` returns the row of an image.
    pub(crate) fn mixed(
        &self,
        input: &Input,
        mixes: &[Mixture],
        place: impl Fn(Image) -> usize,
    ) -> Result<Tensor, TchError> {
        let device = self.0.device();
        let pick = |image: fn(&Mixture) -> Image| {
            let rows: Vec<i64> = mixes.iter().map(|mix| place(image(mix)) as i64).collect();
            input.read(&self.0.f_index_select(0, &Tensor::f_from_slice(&rows)?.f_to_device(device)?)?)
        };
        let (a, b) = (pick(|mix| mix.a)?, pick(|mix| mix.b)?);
        let lambda: Vec<f32> = mixes.iter().map(|mix| mix.lambda).collect();
        let mut shape = vec![1; a.dim()];
        shape[0] = -1;
        let lambda = Tensor::f_from_slice(&lambda)?.f_to_device(device)?.f_view(shape.as_slice())?;
        let rest = lambda.f_neg()?;
        let rest = guarded(|| rest.f_add_scalar(1.0))?;
        a.f_mul(&lambda)?.f_add(&b.f_mul(&rest)?)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.size().first().map_or(0, |&rows| rows as usize)
    }

    pub(crate) fn append(&mut self, more: &Self) -> Result<(), TchError> {
        self.0 = Tensor::f_cat(&[&self.0, &more.0], 0)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images() -> Input {
        let model = ModelSpec::new("wrn-10-1".parse().unwrap(), 1);
        let model = ModelSpec { mean: [0.5, 0.25, 0.0], std: [0.5, 0.25, 1.0], ..model };
        Input::new(&model, Device::Cpu).unwrap()
    }

    fn numbers(tensor: &Tensor) -> Vec<f32> {
        tensor.contiguous().view(-1).try_into().unwrap()
    }

    #[test]
    fn pixels_become_numbers_channel_by_channel() {
        let pixels: [&[u8]; 3] = [&[0, 0, 0], &[255, 255, 255], &[51, 102, 204]];
        let rows = InputRows::upload(&pixels, &images(), Device::Cpu).unwrap();
        let x = rows.read(&images(), 0, 3).unwrap();
        assert_eq!(x.size(), [3, 3, 1, 1]);
        // Channels-last: neighbours in memory are channels.
        assert_eq!(x.stride()[1], 1);
        let wanted = [-1.0, -1.0, 0.0, 1.0, 3.0, 1.0, -0.6, 0.6, 0.8];
        for (a, b) in numbers(&x).iter().zip(wanted) {
            assert!((a - b).abs() < 1e-6, "{a} is not {b}");
        }
    }

    #[test]
    fn a_mixture_is_made_of_its_two_rows() {
        let rows = InputRows::upload(&[&[0; 3], &[255; 3], &[51; 3]], &images(), Device::Cpu).unwrap();
        let mix = |a, b, lambda| Mixture { a, b, lambda, weight: 1.0 };
        let mixes =
            [mix(Image::Labelled(0), Image::Weak(0), 0.25), mix(Image::Partner(0), Image::Labelled(0), 1.0)];
        let place = |image| match image {
            Image::Labelled(i) => i,
            Image::Weak(j) => 1 + j,
            Image::Partner(n) => 2 + n,
        };
        let mixed = rows.mixed(&images(), &mixes, place).unwrap();
        let x = numbers(&mixed);
        // 0.25·(−1) + 0.75·1 in the first channel; the second mixture is row 2 alone.
        assert!((x[0] - 0.5).abs() < 1e-6 && (x[3] + 0.6).abs() < 1e-6, "{x:?}");
    }
}
