//! BatchNorm's running means and variances, in one buffer.

use tch::{Device, Kind, TchError, Tensor};

use crate::network::{Layout, StatisticsId};

/// The running means and variances of all BatchNorm layers, always in f32.
#[derive(Debug)]
pub(crate) struct RunningStatistics {
    /// The means of all layers, then the variances.
    buffer: Tensor,
    channels: Vec<i64>,
    views: Vec<(Tensor, Tensor)>,
    /// The number of updates: `num_batches_tracked` in PyTorch.
    pub(crate) batches: i64,
}

impl RunningStatistics {
    /// Creates zero means and unit variances.
    pub(crate) fn initial(layout: &Layout, device: Device) -> Result<Self, TchError> {
        let channels: Vec<i64> = layout.statistics.iter().map(|layer| layer.channels as i64).collect();
        let all: i64 = channels.iter().sum();
        let options = (Kind::Float, device);
        let halves = [Tensor::f_zeros([all], options)?, Tensor::f_ones([all], options)?];
        Self::over(Tensor::f_cat(&halves, 0)?, channels, 0)
    }

    fn over(buffer: Tensor, channels: Vec<i64>, batches: i64) -> Result<Self, TchError> {
        let all: i64 = channels.iter().sum();
        let mut views = Vec::with_capacity(channels.len());
        let mut start = 0;
        for &length in &channels {
            let mean = buffer.f_narrow(0, start, length)?;
            views.push((mean, buffer.f_narrow(0, all + start, length)?));
            start += length;
        }
        Ok(Self { buffer, channels, views, batches })
    }

    /// Returns the mean and the variance of a layer, as views through which libtorch updates them.
    pub(crate) fn at(&self, id: StatisticsId) -> (&Tensor, &Tensor) {
        let (mean, variance) = &self.views[id.0];
        (mean, variance)
    }

    /// Replaces the mean and the variance of a layer.
    pub(crate) fn set(&mut self, id: StatisticsId, mean: &[f32], variance: &[f32]) -> Result<(), TchError> {
        let (kept_mean, kept_variance) = &mut self.views[id.0];
        kept_mean.f_copy_(&Tensor::f_from_slice(mean)?)?;
        kept_variance.f_copy_(&Tensor::f_from_slice(variance)?)?;
        Ok(())
    }

    /// Copies the statistics for a pass whose update may be discarded.
    pub(crate) fn copy(&self) -> Result<Self, TchError> {
        Self::over(self.buffer.f_detach_copy()?, self.channels.clone(), self.batches)
    }

    /// Returns the means of all layers, then the variances.
    pub(crate) fn numbers(&self) -> &Tensor {
        &self.buffer
    }

    /// Replaces the statistics by those of a step.
    pub(crate) fn update(&mut self, numbers: &Tensor) -> Result<(), TchError> {
        self.buffer.f_copy_(numbers)?;
        self.batches += 1;
        Ok(())
    }
}
