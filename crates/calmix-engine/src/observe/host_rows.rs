//! Outputs of the network, fetched from the device for the plan.

use calmix_core::matrix::Matrix;
use tch::{TchError, Tensor};

use crate::error::EngineError;

/// Rows of numbers of all shards, fetched from the device: labelled ones, unlabelled ones.
#[derive(Debug, Default)]
pub(crate) struct HostRows {
    labelled: Vec<f32>,
    unlabelled: Vec<f32>,
    width: usize,
}

impl HostRows {
    /// Fetches the rows of a shard, of which the first `labelled` are labelled.
    pub(crate) fn add(&mut self, tensor: &Tensor, labelled: usize) -> Result<(), TchError> {
        self.width = tensor.size().get(1).map_or(0, |&width| width as usize);
        let numbers = Vec::<f32>::try_from(&tensor.f_detach()?.f_contiguous()?.f_view([-1])?)?;
        let (first, rest) = numbers.split_at(numbers.len().min(labelled * self.width));
        self.labelled.extend_from_slice(first);
        self.unlabelled.extend_from_slice(rest);
        Ok(())
    }

    /// The labelled rows, whose number is checked.
    ///
    /// # Errors
    /// If libtorch has returned another number of rows.
    pub(crate) fn labelled(&self, rows: usize) -> Result<Matrix<'_>, EngineError> {
        matrix(&self.labelled, rows, self.width)
    }

    /// The unlabelled rows, likewise.
    ///
    /// # Errors
    /// If libtorch has returned another number of rows.
    pub(crate) fn unlabelled(&self, rows: usize) -> Result<Matrix<'_>, EngineError> {
        matrix(&self.unlabelled, rows, self.width)
    }

    /// Whether all numbers are finite.
    pub(crate) fn is_finite(&self) -> bool {
        self.labelled.iter().chain(&self.unlabelled).all(|number| number.is_finite())
    }
}

fn matrix(numbers: &[f32], rows: usize, width: usize) -> Result<Matrix<'_>, EngineError> {
    Matrix::new(numbers, rows, width).map_err(|error| EngineError::Misfit(error.to_string()))
}
