//! The error of the engine.

use calmix_dist::DistError;
use calmix_io::error::ErrorKind;
use calmix_recipe::device::Device;
use tch::TchError;

use crate::weights::WeightsProblem;

/// Why an operation of the engine failed or was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// libtorch refused an operation: too little memory, a driver error, or a bug in calmix.
    #[error("libtorch failed: {}", first_line(.0))]
    Libtorch(#[from] TchError),
    /// This machine or this libtorch does not have the device.
    #[error("there is no {requested} here; available: {}", list(.available))]
    NoDevice { requested: Device, available: Vec<Device> },
    /// Weights that do not belong to the network.
    #[error(transparent)]
    Weights(#[from] WeightsProblem),
    /// A setting that the engine cannot run.
    #[error("{0}")]
    Settings(String),
    /// A batch that contradicts itself.
    #[error("the {batch} batch has {rows} rows, but {got} {what}")]
    Batch {
        /// `labelled`, `unlabelled`, `evaluation` or `features`.
        batch: &'static str,
        /// Rows, counted by their ids.
        rows: usize,
        /// What does not match the number of rows.
        what: &'static str,
        /// Its actual number.
        got: usize,
    },
    /// A batch without labelled rows: every step needs some.
    #[error("the labelled batch is empty")]
    NothingLabelled,
    /// A label that is not a class.
    #[error("row {row} of the labelled batch has label {label}, but there are {classes} classes")]
    Label { row: usize, label: u32, classes: usize },
    /// A plan that does not fit its batch.
    #[error("the plan does not fit its batch: {0}")]
    Misfit(String),
    /// A collective failed: another process died, or the connection to it was lost.
    #[error(transparent)]
    Processes(#[from] DistError),
    /// A loss or a gradient is not finite. Nothing was updated: parameters, statistics and averages are those of
    /// the step before.
    #[error(
        "step {step}: the {what} is not finite, so the weights were not updated; try a lower learning rate, gradient \
         clipping or f32"
    )]
    NotFinite {
        step: u64,
        /// `output of the network`, `gradient`, or the name of a term of the loss.
        what: &'static str,
    },
}

impl EngineError {
    /// Returns what to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoDevice { .. } | Self::Settings(_) => ErrorKind::Mistake,
            _ => ErrorKind::Failure,
        }
    }
}

fn list(devices: &[Device]) -> String {
    devices.iter().map(Device::to_string).collect::<Vec<_>>().join(", ")
}

/// The first line of a libtorch message; the lines after it are a stack trace.
fn first_line(error: &TchError) -> String {
    let message = error.to_string();
    message.lines().next().unwrap_or_default().to_owned()
}
