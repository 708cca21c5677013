//! Why a run cannot start, continue or finish.

use calmix_data::error::DataError;
use calmix_dist::DistError;
use calmix_engine::error::EngineError;
use calmix_heads::HeadsError;
use calmix_io::counted::counted;
use calmix_io::error::FileError;
use calmix_lifecycle::LifecycleError;
use calmix_metrics::error::MetricsError;
use calmix_recipe::RecipeError;
use calmix_run::error::RunError;

use calmix_core::error::CoreError;

/// Why a run stopped, or did not start. Its checkpoints stay as they are.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The recipe is invalid.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The preparation of the dataset was stopped.
    #[error("interrupted; the partly prepared dataset was deleted")]
    PreparationStopped,
    /// The run folder, a checkpoint or predictions cannot be used, or a sink cannot write.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file of the dataset cannot be used, or a batch cannot be loaded; names the sample that caused it.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file of the run cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A training step cannot be planned, or the state of the samples or of the method is inconsistent.
    #[error(transparent)]
    Method(#[from] CoreError),
    /// The engine failed, or a loss was not finite.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A run cannot be prepared, or its table, its recipe or its samples are not those it began with; or a head cannot be
    /// trained.
    #[error(transparent)]
    Lifecycle(Box<LifecycleError>),
    /// A head cannot be trained or evaluated.
    #[error(transparent)]
    Heads(Box<HeadsError>),
    /// Metrics cannot be computed.
    #[error(transparent)]
    Calibration(#[from] MetricsError),
    /// A checkpoint holds a state of the samples or the method that cannot be read.
    #[error(
        "the checkpoint of step {step}: {problem}; it was written by another version of calmix or for another method"
    )]
    State {
        /// The step of the checkpoint.
        step: u64,
        /// What is wrong.
        problem: StateProblem,
    },
    /// A checkpoint holds the weights of another network.
    #[error(
        "the checkpoint of step {step}: its weights have {bytes} bytes, but {network} needs {least}; the recipe or the \
         dataset is not the one that the run started with"
    )]
    OtherNetwork {
        /// The step of the checkpoint.
        step: u64,
        /// Bytes of the checkpoint's weights.
        bytes: u64,
        /// The network of the recipe.
        network: String,
        /// The fewest bytes that the weights of this network can have.
        least: u64,
    },
    /// Too many steps were not finite.
    #[error(
        "step {step}: {problem}; the run has already skipped {}, the most that train.non_finite_skips allows; lower the \
         learning rate, or raise that limit", counted(u64::from(*skips), "step")
    )]
    TooManySkips {
        /// The step that failed.
        step: u64,
        /// What was not finite.
        problem: String,
        /// The number of steps skipped before.
        skips: u32,
    },
    /// A process group failed: another process, or the connection to it.
    #[error(transparent)]
    Processes(#[from] DistError),
    /// Another process failed and sent its error as text.
    #[error("rank {process}: {problem}")]
    RemoteError {
        /// The rank of that process.
        process: usize,
        /// Its error as text.
        problem: String,
        /// Whether it is a mistake of the user.
        mistake: bool,
    },
    /// An error as text, for the other processes; the process where it happened returns the error itself.
    #[error("{text}")]
    AsText {
        /// The error.
        text: String,
        /// Whether it is a mistake of the user.
        mistake: bool,
    },
    /// Another process sent a message that this one cannot read.
    #[error(
        "another rank of this run sent an unreadable message{}; start all ranks with the same version of calmix",
         because(.0.as_ref())
    )]
    UnreadableMessage(Option<serde_json::Error>),
    /// A process would train another run than rank 0.
    #[error(
        "rank {process} has a different {what} from rank 0: {there} instead of {here}; start all ranks with the same \
         version of calmix, the same arguments and the same data"
    )]
    DifferentRun {
        /// The rank of that process.
        process: usize,
        /// What differs.
        what: &'static str,
        /// The value of rank 0.
        here: String,
        /// The value of the other rank.
        there: String,
    },
    /// Processes no longer have the same step or the same weights.
    #[error(
        "step {step}: {}. Suspect faulty memory or hardware; resume from the last checkpoint, on another machine if it \
         happens again.", diverged(.what, .processes, *.of)
    )]
    Diverged {
        /// The step.
        step: u64,
        /// What differs: `step` or `weights`.
        what: &'static str,
        /// The ranks in the minority; all but the first if there is no majority.
        processes: Vec<usize>,
        /// The number of ranks.
        of: usize,
    },
    /// There are more processes than shards.
    #[error(
        "{} cannot share {} (train.groups = {groups}, train.shards = {shards}); start at most as many processes as there are \
         shards", counted(*processes as u64, "process"), counted(u64::from(*groups) * u64::from(*shards), "shard")
    )]
    TooManyProcesses {
        /// The number of processes.
        processes: usize,
        /// Groups per step.
        groups: u32,
        /// Shards per group.
        shards: u32,
    },
    /// The run needs more memory than there is.
    #[error(
        "this run does not fit into memory: the state of {samples} unlabelled samples in {classes} classes takes {} MB and \
         the network {} MB; with the copies for a checkpoint it needs {} MB, but {} MB are available. Check the number of \
         classes; train on fewer unlabelled samples (labels.unlabelled_from), use a smaller network, or spread the samples \
         over more processes on more machines", state >> 20, network >> 20, needed >> 20, available >> 20
    )]
    Memory {
        /// Unlabelled samples of this process.
        samples: usize,
        /// The number of classes.
        classes: usize,
        /// Bytes for the state of these samples.
        state: u64,
        /// Bytes of the network.
        network: u64,
        /// Bytes in total, with the copies for a checkpoint.
        needed: u64,
        /// Bytes of available memory.
        available: u64,
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

impl From<HeadsError> for TrainError {
    fn from(error: HeadsError) -> Self {
        match error {
            HeadsError::Lifecycle(error) => error.into(),
            HeadsError::Stopped => Self::Abandoned,
            error => Self::Heads(Box::new(error)),
        }
    }
}

impl From<LifecycleError> for TrainError {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::Recipe(error) => Self::Recipe(error),
            LifecycleError::Run(error) => Self::Run(error),
            LifecycleError::Data(error) => Self::Data(error),
            LifecycleError::File(error) => Self::File(error),
            LifecycleError::Method(error) => Self::Method(error),
            LifecycleError::Pretrained(error) => Self::Pretrained(error),
            LifecycleError::Calibration(error) => Self::Calibration(error),
            LifecycleError::PreparationStopped => Self::PreparationStopped,
            LifecycleError::Stopped => Self::Abandoned,
            LifecycleError::Unsupported(sentence) => Self::Unsupported(sentence),
            error => Self::Lifecycle(Box::new(error)),
        }
    }
}

/// What is wrong with the state in a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateProblem {
    /// The state of its samples is damaged or missing.
    #[error(transparent)]
    Samples(#[from] RunError),
    /// Its JSON cannot be parsed.
    #[error("its state cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

fn because(error: Option<&serde_json::Error>) -> String {
    error.map(|error| format!(" ({error})")).unwrap_or_default()
}

/// Names the ranks that have diverged, and how many they differ from.
fn diverged(what: &str, ranks: &[usize], of: usize) -> String {
    let differ = if what.ends_with('s') { "differ" } else { "differs" };
    let others = match of.saturating_sub(ranks.len()) {
        1 => "the other rank".to_owned(),
        others => format!("the other {others} ranks"),
    };
    match ranks {
        [one] => format!("rank {one} has diverged: its {what} {differ} from {others}"),
        many => {
            let names: Vec<_> = many.iter().map(ToString::to_string).collect();
            format!("ranks {} have diverged: their {what} {differ} from {others}", names.join(", "))
        }
    }
}
