//! Whether an error is a mistake of the user. Then the same command fails again until the user corrects it, its recipe or its
//! dataset, so a launcher should not repeat it. Nothing has started by then.

use calmix_core::error::CoreError;
use calmix_io::error::ErrorKind;

use super::error::TrainError;

impl TrainError {
    /// What to do about it. What is not a mistake may pass by itself, or happens during training, when the run has
    /// checkpoints to resume from.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Recipe(error) => error.kind(),
            Self::Run(error) => error.kind(),
            Self::Data(error) => error.kind(),
            Self::Pretrained(error) => error.kind(),
            Self::Engine(error) => error.kind(),
            Self::Processes(error) => error.kind(),
            Self::Lifecycle(error) => error.kind(),
            Self::Heads(error) => error.kind(),
            Self::UnreadableMessage(_)
            | Self::DifferentRun { .. }
            | Self::TooManyProcesses { .. }
            | Self::Memory { .. }
            | Self::Method(CoreError::Memory { .. })
            | Self::Unsupported(_)
            | Self::RemoteError { mistake: true, .. }
            | Self::AsText { mistake: true, .. } => ErrorKind::Mistake,
            // The paths of a run are its own: one that is wrong is damage.
            Self::File(error) if error.is_transient() => ErrorKind::Transient,
            _ => ErrorKind::Failure,
        }
    }

    /// Returns whether it is a mistake of the user, as other processes learn it.
    pub(super) fn is_mistake(&self) -> bool {
        self.kind() == ErrorKind::Mistake
    }

    /// The same error as text, for the other processes.
    pub(super) fn as_text(&self) -> Self {
        Self::AsText { text: self.to_string(), mistake: self.is_mistake() }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;
    use std::time::Duration;

    use calmix_data::error::DataError;
    use calmix_dist::{DistError, Operation};
    use calmix_engine::device;
    use calmix_engine::error::EngineError;
    use calmix_formats::error::FormatProblem;
    use calmix_io::error::{FileError, FileProblem};
    use calmix_lifecycle::LifecycleError;
    use calmix_recipe::device::Device;
    use calmix_run::error::RunError;

    use super::super::StateProblem;
    use super::*;
    use calmix_lifecycle::start::StartError;
    use calmix_recipe::Layers;

    fn path() -> PathBuf {
        PathBuf::from("here")
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
            DataError::UnequalShards { stream: "labelled", rows: 3, shards: 2 }.into(),
            DataError::FewerThanShards { samples: 1, shards: 2 }.into(),
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
            TrainError::DifferentRun {
                process: 1,
                what: "recipe",
                here: words.clone(),
                there: words.clone(),
            },
            TrainError::TooManyProcesses { processes: 3, groups: 1, shards: 2 },
            TrainError::Memory { samples: 1, classes: 1, state: 1, network: 1, needed: 1, available: 1 },
            LifecycleError::pretrained(file(io::ErrorKind::NotFound)).into(),
            LifecycleError::pretrained(FileError::new(path(), FileProblem::Content(words.clone()))).into(),
            TrainError::Unsupported(words),
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

    /// Failures: they may pass, or the run can be resumed.
    fn failures() -> Vec<TrainError> {
        let words = || "wrong".to_owned();
        let damage = || FileError::new(path(), FileProblem::Changed(words()));
        vec![
            RunError::Locked { path: path(), holder: words() }.into(),
            RunError::Foreign { path: path(), holder: words() }.into(),
            RunError::File(file(io::ErrorKind::StorageFull)).into(),
            RunError::File(damage()).into(),
            data(io(io::ErrorKind::StorageFull)),
            data(io(io::ErrorKind::TimedOut)),
            file(io::ErrorKind::PermissionDenied).into(),
            damage().into(),
            RunError::NoneUsable { folder: path(), skipped: Vec::new() }.into(),
            RunError::Unreadable(damage()).into(),
            RunError::CheckpointExists { path: path() }.into(),
            DataError::Sample { id: 1, error: Box::new(DataError::new(path(), io(io::ErrorKind::NotFound))) }
                .into(),
            DataError::View { id: 1, problem: FormatProblem::Limit(words()) }.into(),
            DataError::NoLabel { id: 1 }.into(),
            DataError::Panicked { id: 1, message: words() }.into(),
            DataError::NoReplacement { id: 1, tried: 1 }.into(),
            DataError::Stalled { ids: Vec::new(), after: Duration::ZERO }.into(),
            DataError::Interrupted.into(),
            DataError::NoWorkers { step: 1 }.into(),
            DataError::Thread(io(io::ErrorKind::OutOfMemory)).into(),
            CoreError::NotKept { what: "margins" }.into(),
            CoreError::UnknownSample { sample: 1 }.into(),
            CoreError::Damaged { what: "margins" }.into(),
            EngineError::NothingLabelled.into(),
            EngineError::NotFinite { step: 1, what: "gradient" }.into(),
            RunError::Sink { what: "a file", source: io(io::ErrorKind::StorageFull) }.into(),
            DistError::Broken { rank: 0, operation: Operation::Barrier }.into(),
            DistError::Argument { rank: 0, operation: Operation::Barrier, what: words() }.into(),
            TrainError::State {
                step: 1,
                problem: StateProblem::Json(serde_json::from_str::<u8>("").unwrap_err()),
            },
            TrainError::OtherNetwork { step: 1, bytes: 1, network: words(), least: 1 },
            TrainError::TooManySkips { step: 1, problem: words(), skips: 1 },
            TrainError::Diverged { step: 1, what: "step", processes: vec![1], of: 2 },
            RunError::Backlog { bytes: 1, problem: damage() }.into(),
            LifecycleError::pretrained(file(io::ErrorKind::TimedOut)).into(),
            TrainError::PreparationStopped,
            TrainError::Abandoned,
        ]
    }

    #[test]
    fn every_error_is_a_mistake_or_a_failure() {
        for (errors, expected) in [(mistakes(), true), (failures(), false)] {
            for error in errors {
                assert_eq!(error.is_mistake(), expected, "{error:?}");
                let text = error.as_text();
                assert_eq!((text.is_mistake(), text.to_string()), (expected, error.to_string()));
                let remote =
                    TrainError::RemoteError { process: 1, problem: text.to_string(), mistake: expected };
                assert_eq!(remote.is_mistake(), expected);
            }
        }
    }
}
