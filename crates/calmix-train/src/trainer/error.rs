//! Why a run cannot start, continue or finish.

use std::path::PathBuf;

use calmix_core::plan::PlanError;
use calmix_core::samples::StateError;
use calmix_data::error::DataError;
use calmix_data::loader::LoadError;
use calmix_dist::DistError;
use calmix_engine::error::EngineError;
use calmix_io::counted::counted;
use calmix_io::error::FileError;
use calmix_io::shown::shown;
use calmix_metrics::error::CalibrationError;
use calmix_recipe::{Difference, RecipeError};
use calmix_run::checkpoint::CheckpointError;
use calmix_run::predictions_file::{PredictionsError, TensorsError};
use calmix_run::run::RunError;
use calmix_run::sample_files::SampleFileError;
use calmix_run::sink::SinkError;

use crate::start::StartError;

/// Why a run stopped, or did not start. Its checkpoints stay as they are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// What the user asked for cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The preparation of the dataset was stopped.
    #[error("interrupted; the partly prepared dataset was deleted")]
    PreparationStopped,
    /// The folder of the run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of the dataset.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file of the run.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its checkpoints.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A batch, with the sample that is to blame.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A plan that cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The state of samples, or of the method.
    #[error(transparent)]
    Samples(#[from] StateError),
    /// The engine; also a loss that is not finite.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A sink.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Predictions.
    #[error(transparent)]
    Predictions(#[from] PredictionsError),
    /// Metrics.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// What a checkpoint says of the state of samples or the method.
    #[error("the checkpoint of step {step}: {problem}; another version wrote it, or another method did")]
    State {
        /// Its step.
        step: u64,
        /// What is wrong.
        problem: StateProblem,
    },
    /// Weights of another network.
    #[error(
        "the checkpoint of step {step}: its weights have {bytes} bytes, but {network} has {least}; its recipe or its dataset \
         is not the run's own"
    )]
    OtherNetwork {
        /// Its step.
        step: u64,
        /// Bytes of its weights.
        bytes: u64,
        /// The network of the recipe.
        network: String,
        /// Bytes that its weights have at least.
        least: u64,
    },
    /// The run stopped before it wrote its recipe.
    #[error("{}: this run was stopped before its first step; start it again with its recipe", shown(.path.display()))]
    NotBegun {
        /// Its folder.
        path: PathBuf,
    },
    /// A resumed run would learn something else.
    #[error("{}: this would be another run: {}; start a new one for that. {}", shown(.path.display()), listed(.changes), may_change())]
    Changed {
        /// The folder of the run.
        path: PathBuf,
        /// Every key that may not change and would.
        changes: Vec<Difference>,
    },
    /// The dataset is not the one that the run started with.
    #[error(
        "{}: the dataset was {before} when the run started and is {now} now; put back the files that it was prepared \
         from, or start a new run", shown(.path.display())
    )]
    OtherDataset {
        /// The folder of the run.
        path: PathBuf,
        /// The fingerprint then.
        before: String,
        /// The fingerprint now.
        now: String,
    },
    /// The split is not the one that the run started with.
    #[error(
        "{}: not the split that the run started with: other samples would be trained on; put back split.json as the run wrote \
         it, or start a new run", shown(.path.display())
    )]
    OtherSplit {
        /// The split.
        path: PathBuf,
    },
    /// Too many steps were not finite.
    #[error(
        "step {step}: {problem}; the run has skipped {skips} steps, and train.non_finite_skips allows no more; lower the learning rate, or raise that number"
    )]
    TooManySkips {
        /// The step.
        step: u64,
        /// What was not finite.
        problem: String,
        /// How many steps were skipped.
        skips: u32,
    },
    /// A process group failed: another process, or the connection to it.
    #[error(transparent)]
    Processes(#[from] DistError),
    /// Another process failed and sent its error as text.
    #[error("process {process}: {problem}")]
    RemoteError {
        /// Its rank.
        process: usize,
        /// Its error.
        problem: String,
        /// Whether it is a mistake of the user.
        mistake: bool,
    },
    /// An error as text, for the other processes; the process that has it reports the error itself.
    #[error("{text}")]
    AsText {
        /// The error.
        text: String,
        /// Whether it is a mistake of the user.
        mistake: bool,
    },
    /// Another process sent a message that this one cannot read.
    #[error("another process of this run sent an unreadable message{}; start all processes with the same calmix", because(.0.as_ref()))]
    UnreadableMessage(Option<serde_json::Error>),
    /// A process would train another run than process 0.
    #[error(
        "process {process} has another {what} than process 0: {there} instead of {here}; start all processes with the same \
         calmix, the same arguments and the same data"
    )]
    DifferentRun {
        /// Its rank.
        process: usize,
        /// What differs.
        what: &'static str,
        /// The value of process 0.
        here: String,
        /// The value of the other process.
        there: String,
    },
    /// Processes no longer have the same step or the same weights.
    #[error(
        "step {step}: {} of {of} processes another {what} than the others; its memory or its arithmetic may be at fault: \
         resume the run from its last checkpoint, on another machine if it happens again", have(.processes)
    )]
    Diverged {
        /// The step.
        step: u64,
        /// What differs.
        what: &'static str,
        /// The processes in the minority; all but the first if there is no majority.
        processes: Vec<usize>,
        /// How many there are.
        of: usize,
    },
    /// Shards that cannot be shared out.
    #[error(
        "{} cannot share {} evenly (train.groups = {groups}, train.shards = {shards}); choose a number of processes that \
         divides it", counted(*processes as u64, "process"), counted(u64::from(*groups) * u64::from(*shards), "shard")
    )]
    Uneven {
        /// How many processes there are.
        processes: usize,
        /// Groups of a step.
        groups: u32,
        /// Shards of a group.
        shards: u32,
    },
    /// More than there is memory for.
    #[error(
        "this run does not fit into memory: the state of {samples} unlabelled samples in {classes} classes takes {} MB, the \
         network {} MB; with the copies of a checkpoint {} MB, and {} MB are left here. Check the number of classes; learn \
         from fewer unlabelled samples (labels.unlabelled_from), take a smaller network, or share the samples among more \
         processes on more machines", state >> 20, network >> 20, needed >> 20, available >> 20
    )]
    Memory {
        /// Unlabelled samples of this process.
        samples: usize,
        /// Classes.
        classes: usize,
        /// Bytes of their state.
        state: u64,
        /// Bytes of the network.
        network: u64,
        /// Bytes altogether.
        needed: u64,
        /// Bytes that are left.
        available: u64,
    },
    /// The disk has taken nothing for so long that what waits for it is too much.
    #[error(
        "{problem}; {} MB of events and predictions wait to be written, and calmix keeps no more: make room and resume \
         the run from its last checkpoint", bytes >> 20
    )]
    Backlog {
        /// How many bytes.
        bytes: usize,
        /// What the disk said last.
        problem: FileError,
    },
    /// An evaluation was abandoned, because the run has to stop.
    #[error("the evaluation was abandoned because the run has to stop; resume the run to repeat it")]
    Abandoned,
    /// A file of pretrained weights that cannot be used.
    #[error(transparent)]
    Pretrained(FileError),
    /// A recipe that this version cannot run.
    #[error("{0}")]
    Unsupported(String),
}

/// What is wrong with the state in a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateProblem {
    /// Its tensors.
    #[error(transparent)]
    Tensors(#[from] TensorsError),
    /// Its samples.
    #[error(transparent)]
    Samples(#[from] SampleFileError),
    /// Its JSON.
    #[error("its state cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

fn because(error: Option<&serde_json::Error>) -> String {
    error.map(|error| format!(" ({error})")).unwrap_or_default()
}

fn have(processes: &[usize]) -> String {
    match processes {
        [one] => format!("process {one} has"),
        many => {
            let names: Vec<_> = many.iter().map(ToString::to_string).collect();
            format!("processes {} have", names.join(", "))
        }
    }
}

fn listed(changes: &[Difference]) -> String {
    changes
        .iter()
        .map(|change| format!("{} was {} and would be {}", change.path, change.old, change.new))
        .collect::<Vec<_>>()
        .join("; ")
}

fn may_change() -> String {
    let free = calmix_recipe::may_change();
    format!("What may change: {}", free.join(", "))
}
