//! Why the engine could not do what it was asked for.

use calmix_dist::DistError;
use tch::TchError;

use crate::device::MissingDevice;
use crate::weights::WeightsError;

/// Why the engine could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// libtorch refused an operation: memory, a driver, or a mistake of ours.
    #[error("libtorch failed: {}", first_line(.0))]
    Libtorch(#[from] TchError),
    /// The device is not there.
    #[error(transparent)]
    Device(#[from] MissingDevice),
    /// Weights that do not belong to the network.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A setting that the engine cannot run.
    #[error("{0}")]
    Settings(String),
    /// A batch that contradicts itself.
    #[error("the {batch} batch has {rows} rows but {got} {what}")]
    Batch {
        /// Which one.
        batch: &'static str,
        /// Rows, counted by ids.
        rows: usize,
        /// What there is another number of.
        what: &'static str,
        /// How many there are.
        got: usize,
    },
    /// There is always something labelled to train on.
    #[error("the labelled batch is empty")]
    NothingLabelled,
    /// A label that is not a class.
    #[error("row {row} of the labelled batch has label {label}, but there are {classes} classes")]
    Label {
        /// The row.
        row: usize,
        /// Its label.
        label: u32,
        /// C.
        classes: usize,
    },
    /// A plan that does not fit its batch.
    #[error("the plan does not fit its batch: {0}")]
    Misfit(String),
    /// Another process, or the way to it.
    #[error(transparent)]
    Processes(#[from] DistError),
    /// A loss or a gradient is not finite. Nothing was updated: parameters, statistics and averages are those of
    /// the step before.
    #[error(
        "step {step}: the {what} is not finite, so nothing was trained on it; try a lower learning rate, gradient clipping, or f32"
    )]
    NotFinite {
        /// The step.
        step: u64,
        /// `output of the network`, `gradient`, or the name of a term of the loss.
        what: &'static str,
    },
}

/// libtorch adds the addresses of its stack to its sentences; the first line is the sentence.
fn first_line(error: &TchError) -> String {
    let said = error.to_string();
    said.lines().next().unwrap_or_default().to_owned()
}
