//! The errors of the engine.

use calmix_dist::DistError;
use calmix_io::error::ErrorKind;
use calmix_recipe::device::Device;
use tch::TchError;

use crate::weights::WeightsProblem;

/// The reason why an operation of the engine failed or was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// libtorch refused an operation: too little memory, a driver error, or a bug in calmix.
    #[error("libtorch failed: {}", first_line(.0))]
    Libtorch(#[from] TchError),
    /// This machine or this libtorch does not have the device.
    #[error("there is no {requested} here; available: {}", list(.available))]
    NoDevice { requested: Device, available: Vec<Device> },
    /// The weights do not belong to the network.
    #[error(transparent)]
    Weights(#[from] WeightsProblem),
    /// A setting that the engine cannot run.
    #[error("{0}")]
    Settings(String),
    /// A batch is inconsistent.
    #[error("the {batch} batch has {rows} rows, but {got} {what}")]
    Batch {
        /// `labelled`, `unlabelled`, `evaluation` or `features`.
        batch: &'static str,
        /// The number of rows, counted by their ids.
        rows: usize,
        /// The part whose number differs from that of the rows.
        what: &'static str,
        /// The number of this part.
        got: usize,
    },
    /// A batch without labelled rows, which every step needs.
    #[error("the labelled batch is empty")]
    NothingLabelled,
    /// A label that is not a class.
    #[error("row {row} of the labelled batch has label {label}, but there are {classes} classes")]
    Label { row: usize, label: u32, classes: usize },
    /// A plan does not match its batch.
    #[error("the plan does not fit its batch: {0}")]
    Misfit(String),
    /// A collective failed: another process died, or the connection to it was lost.
    #[error(transparent)]
    Processes(#[from] DistError),
    /// A loss or a gradient is not finite. Nothing was updated: parameters, statistics and averages are those before the step.
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
    /// Returns the kind of the error.
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

/// Returns the first line of a libtorch message; the others are a stack trace.
fn first_line(error: &TchError) -> String {
    let message = error.to_string();
    message.lines().next().unwrap_or_default().to_owned()
}
