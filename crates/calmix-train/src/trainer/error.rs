//! The errors of starting, continuing and finishing a run.

use calmix_core::error::CoreError;
use calmix_data::error::DataError;
use calmix_dist::DistError;
use calmix_engine::error::EngineError;
use calmix_heads::HeadsError;
use calmix_io::error::{ErrorKind, FileError};
use calmix_io::text::counted;
use calmix_lifecycle::LifecycleError;
use calmix_metrics::error::MetricsError;
use calmix_recipe::RecipeError;
use calmix_run::error::RunError;

/// The reason why a run stopped, or did not start. Its checkpoints are not affected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A part that is common to all runs failed, or the run has to stop.
    #[error(transparent)]
    Lifecycle(#[from] LifecycleError),
    /// A head cannot be trained or evaluated.
    #[error(transparent)]
    Heads(Box<HeadsError>),
    /// The engine failed, or a loss was not finite.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A checkpoint's state of the samples or of the method cannot be read.
    #[error(
        "the checkpoint of step {step}: {problem}; it was written by another version of calmix or for another method"
    )]
    State { step: u64, problem: StateProblem },
    /// A checkpoint has the weights of another network.
    #[error(
        "the checkpoint of step {step}: its weights have {bytes} bytes, but {network} needs {min_bytes}; the recipe or the \
         dataset is not the one that the run started with"
    )]
    OtherNetwork {
        step: u64,
        /// The size of the checkpoint's weights in bytes.
        bytes: u64,
        network: String,
        /// The minimum size of this network's weights in bytes.
        min_bytes: u64,
    },
    /// More steps were not finite than the recipe allows.
    #[error(
        "step {step}: {problem}; the run has already skipped {}, the most that train.non_finite_skips allows; lower the \
         learning rate, or raise that limit", counted(u64::from(*skips), "step")
    )]
    TooManySkips {
        step: u64,
        problem: String,
        /// The number of steps that were skipped before.
        skips: u32,
    },
    /// A process group failed: another process, or the connection to it.
    #[error(transparent)]
    Processes(#[from] DistError),
    /// Another process failed and sent its error as text.
    #[error("rank {process}: {problem}")]
    RemoteError {
        process: usize,
        problem: String,
        /// Whether it is a mistake of the user.
        mistake: bool,
    },
    /// An error as text for the other processes. The process in which it occurred returns the error itself.
    #[error("{text}")]
    AsText {
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
    /// A process has another run than rank 0.
    #[error(
        "rank {process} has a different {what} from rank 0: {found} instead of {expected}; start all ranks with the same \
         version of calmix, the same arguments and the same data"
    )]
    DifferentRun {
        process: usize,
        what: &'static str,
        /// The value of rank 0.
        expected: String,
        /// The value of the other rank.
        found: String,
    },
    /// Processes have diverged: they are at different steps, or have different weights.
    #[error(
        "step {step}: {}. Suspect faulty memory or hardware; resume from the last checkpoint, on another machine if it \
         happens again.", diverged(.what, .processes, *.of)
    )]
    Diverged {
        step: u64,
        /// The difference: `step` or `weights`.
        what: &'static str,
        /// The ranks in the minority; all but the first if there is no majority.
        processes: Vec<usize>,
        of: usize,
    },
    /// There are more processes than micro-batches.
    #[error(
        "{} cannot share {} (train.groups = {groups}, train.micro_batches = {micro_batches}); start at most as many processes \
         as there are micro-batches", counted(*processes as u64, "process"), counted(u64::from(*groups) * u64::from(*micro_batches), "micro-batch")
    )]
    TooManyProcesses { processes: usize, groups: u32, micro_batches: u32 },
    /// The run does not fit into memory.
    #[error(
        "this run does not fit into memory: the state of {samples} unlabelled samples in {classes} classes takes {} MB and \
         the network {} MB; with the copies for a checkpoint it needs {} MB, but {} MB are available. Check the number of \
         classes; train on fewer unlabelled samples (labels.unlabelled_from), use a smaller network, or spread the samples \
         over more processes on more machines", state >> 20, network >> 20, needed >> 20, available >> 20
    )]
    Memory {
        /// The number of unlabelled samples of this process.
        samples: usize,
        classes: usize,
        /// The size of the state of these samples in bytes.
        state: u64,
        network: u64,
        /// The total size in bytes, including copies for a checkpoint.
        needed: u64,
        available: u64,
    },
}

impl From<HeadsError> for TrainError {
    fn from(error: HeadsError) -> Self {
        match error {
            HeadsError::Lifecycle(error) => error.into(),
            HeadsError::Stopped => LifecycleError::Stopped.into(),
            error => Self::Heads(Box::new(error)),
        }
    }
}

/// Converts errors of lower crates that every kind of run can have, by way of `LifecycleError`.
macro_rules! from_lower_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for TrainError {
            fn from(error: $error) -> Self {
                Self::Lifecycle(error.into())
            }
        })*
    };
}

from_lower_errors!(CoreError, DataError, FileError, MetricsError, RecipeError, RunError);

impl TrainError {
    /// Returns the kind of the error. A mistake recurs until the user corrects it, so a launcher should not repeat the command.
    /// For other errors, trying again may help, or the run has checkpoints to resume from.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Lifecycle(error) => error.kind(),
            Self::Heads(error) => error.kind(),
            Self::Engine(error) => error.kind(),
            Self::Processes(error) => error.kind(),
            Self::UnreadableMessage(_)
            | Self::DifferentRun { .. }
            | Self::TooManyProcesses { .. }
            | Self::Memory { .. }
            | Self::RemoteError { mistake: true, .. }
            | Self::AsText { mistake: true, .. } => ErrorKind::Mistake,
            _ => ErrorKind::Failure,
        }
    }

    /// Returns whether it is a mistake of the user; other processes receive this flag with the text.
    pub(super) fn is_mistake(&self) -> bool {
        self.kind() == ErrorKind::Mistake
    }

    /// Returns the same error as text, for the other processes.
    pub(super) fn as_text(&self) -> Self {
        Self::AsText { text: self.to_string(), mistake: self.is_mistake() }
    }

    /// Returns the error of a run that has to stop.
    pub(super) fn stopped() -> Self {
        LifecycleError::Stopped.into()
    }

    /// Returns whether the run has to stop.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self, Self::Lifecycle(LifecycleError::Stopped))
    }

    /// Returns the error for a recipe that this version cannot run.
    pub(super) fn unsupported(sentence: impl Into<String>) -> Self {
        LifecycleError::Unsupported(sentence.into()).into()
    }
}

/// The problem with the state in a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateProblem {
    /// The state of its samples is damaged or missing.
    #[error(transparent)]
    Samples(#[from] RunError),
    #[error("its state cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

fn because(error: Option<&serde_json::Error>) -> String {
    error.map(|error| format!(" ({error})")).unwrap_or_default()
}

/// Names the ranks that have diverged, and the number of ranks that they differ from.
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use calmix_dist::Operation;
    use calmix_engine::device;
    use calmix_formats::error::FormatProblem;
    use calmix_io::error::FileProblem;
    use calmix_lifecycle::start::StartError;
    use calmix_recipe::Layers;
    use calmix_recipe::device::Device;

    use super::*;

    fn path() -> PathBuf {
        PathBuf::from("run")
    }

    fn io(kind: io::ErrorKind) -> io::Error {
        kind.into()
    }

    fn file(kind: io::ErrorKind) -> FileError {
        FileError::new(path(), io(kind))
    }

    fn data(problem: impl Into<FormatProblem>) -> TrainError {
        DataError::new(path(), problem).into()
    }

    /// Mistakes: repeating the command does not help.
    fn mistakes() -> Vec<TrainError> {
        let words = "wrong".to_owned();
        let mut mistakes = vec![
            Layers::new().set("train.stpes=1").resolve().unwrap_err().into(),
            LifecycleError::from(StartError::Nothing).into(),
            RunError::Exists { path: path() }.into(),
            RunError::NotEmpty { path: path(), found: words.clone() }.into(),
            RunError::NoRun { path: path() }.into(),
            RunError::NoLocks { path: path(), source: io(io::ErrorKind::Unsupported) }.into(),
            data(FormatProblem::Content(words.clone())),
            data(FormatProblem::Format(words.clone())),
            data(FormatProblem::Limit(words.clone())),
            data(FormatProblem::Changed(words.clone())),
            RunError::CheckpointName { path: path() }.into(),
            RunError::OtherFormat { path: path(), format: 9 }.into(),
            DataError::NoSamples { stream: "labelled", rows: 1 }.into(),
            DataError::UnevenBatch { stream: "labelled", rows: 3, micro_batches: 2 }.into(),
            DataError::TooFewUnlabelled { samples: 1, micro_batches: 2 }.into(),
            DataError::TooLarge { rows: 1, bytes: 1 }.into(),
            CoreError::Memory { samples: 1, classes: 1, bytes: 1 }.into(),
            device::check(Device::Cuda(4095)).unwrap_err().into(),
            EngineError::Settings(words.clone()).into(),
            DistError::NoNccl.into(),
            DistError::Taken { rank: 0, size: 2, place: words.clone() }.into(),
            LifecycleError::NotBegun { path: path() }.into(),
            LifecycleError::Changed { path: path(), changes: Vec::new() }.into(),
            LifecycleError::OtherDataset { path: path(), before: words.clone(), now: words.clone() }.into(),
            LifecycleError::OtherSplit { path: path() }.into(),
            TrainError::UnreadableMessage(None),
            TrainError::DifferentRun { process: 1, what: "x", expected: words.clone(), found: words.clone() },
            TrainError::TooManyProcesses { processes: 3, groups: 1, micro_batches: 2 },
            TrainError::Memory { samples: 1, classes: 1, state: 1, network: 1, needed: 1, available: 1 },
            LifecycleError::pretrained(file(io::ErrorKind::NotFound)).into(),
            LifecycleError::pretrained(FileError::new(path(), FileProblem::Content(words.clone()))).into(),
            TrainError::unsupported(words),
        ];
        let kinds = [
            io::ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem,
            io::ErrorKind::NotADirectory,
            io::ErrorKind::IsADirectory,
        ];
        mistakes.extend(kinds.map(|kind| data(io(kind))));
        mistakes.extend(kinds.map(|kind| RunError::File(file(kind)).into()));
        mistakes
    }

    /// Failures: they may pass, or the run can be resumed. Of the variants that a crate below leaves to its default, one stands
    /// for all.
    fn failures() -> Vec<TrainError> {
        let words = || "wrong".to_owned();
        let damage = || FileError::new(path(), FileProblem::Changed(words()));
        let missing_sample = DataError::new(path(), io(io::ErrorKind::NotFound));
        let json = serde_json::from_str::<u8>("").unwrap_err();
        vec![
            RunError::Locked { path: path(), holder: words() }.into(),
            RunError::File(file(io::ErrorKind::StorageFull)).into(),
            RunError::File(damage()).into(),
            RunError::Unreadable(damage()).into(),
            RunError::Sink { what: "a file", source: io(io::ErrorKind::StorageFull) }.into(),
            data(io(io::ErrorKind::StorageFull)),
            data(io(io::ErrorKind::TimedOut)),
            file(io::ErrorKind::PermissionDenied).into(),
            damage().into(),
            DataError::Sample { id: 1, error: Box::new(missing_sample) }.into(),
            DataError::Interrupted.into(),
            CoreError::MissingState { what: "margins" }.into(),
            EngineError::NotFinite { step: 1, what: "gradient" }.into(),
            DistError::Broken { rank: 0, operation: Operation::Barrier }.into(),
            TrainError::State { step: 1, problem: StateProblem::Json(json) },
            TrainError::Diverged { step: 1, what: "step", processes: vec![1], of: 2 },
            LifecycleError::pretrained(file(io::ErrorKind::TimedOut)).into(),
            TrainError::stopped(),
        ]
    }

    #[test]
    fn every_error_is_a_mistake_or_a_failure() {
        for (errors, expected) in [(mistakes(), true), (failures(), false)] {
            for error in errors {
                assert_eq!(error.is_mistake(), expected, "{error:?}");
                let text = error.as_text();
                assert_eq!((text.is_mistake(), text.to_string()), (expected, error.to_string()));
                let problem = text.to_string();
                let remote = TrainError::RemoteError { process: 1, problem, mistake: expected };
                assert_eq!(remote.is_mistake(), expected);
            }
        }
    }
}
