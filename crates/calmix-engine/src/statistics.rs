//! BatchNorm's running means and variances, in one buffer, so that a step can be taken back.

use tch::{Device, Kind, TchError, Tensor};

use crate::network::{Layout, StatisticsId};

/// Running means and variances of all BatchNorm layers, always f32.
#[derive(Debug)]
pub(crate) struct RunningStatistics {
    /// Means of all layers, then variances.
    buffer: Tensor,
    views: Vec<(Tensor, Tensor)>,
    /// How often they moved on: what PyTorch calls `num_batches_tracked`.
    pub(crate) batches: i64,
}

impl RunningStatistics {
    /// Zero means and unit variances.
    pub(crate) fn initial(layout: &Layout, device: Device) -> Result<Self, TchError> {
        let channels: i64 = layout.statistics.iter().map(|layer| layer.channels as i64).sum();
        let options = (Kind::Float, device);
        let halves = [Tensor::f_zeros([channels], options)?, Tensor::f_ones([channels], options)?];
        let buffer = Tensor::f_cat(&halves, 0)?;
        let mut views = Vec::new();
        let mut start = 0;
        for layer in &layout.statistics {
            let length = layer.channels as i64;
            let mean = buffer.f_narrow(0, start, length)?;
            views.push((mean, buffer.f_narrow(0, channels + start, length)?));
            start += length;
        }
        Ok(Self { buffer, views, batches: 0 })
    }

    /// Mean and variance of a layer: views, through which libtorch moves them on.
    pub(crate) fn at(&self, id: StatisticsId) -> (&Tensor, &Tensor) {
        let (mean, variance) = &self.views[id.0];
        (mean, variance)
    }

    /// Replaces those of a layer.
    pub(crate) fn set(&mut self, id: StatisticsId, mean: &[f32], variance: &[f32]) -> Result<(), TchError> {
        let (kept_mean, kept_variance) = &mut self.views[id.0];
        kept_mean.f_copy_(&Tensor::f_from_slice(mean)?)?;
        kept_variance.f_copy_(&Tensor::f_from_slice(variance)?)?;
        Ok(())
    }

    /// What to go back to.
    pub(crate) fn copy(&self) -> Result<Tensor, TchError> {
        self.buffer.f_detach_copy()
    }

    /// Goes back.
    pub(crate) fn restore(&mut self, copy: &Tensor) -> Result<(), TchError> {
        self.buffer.f_copy_(copy)?;
        Ok(())
    }
}
